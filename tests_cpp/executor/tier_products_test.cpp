// QUANTIZE and LINEAR, and RMS_NORM with the products after it, on every tier that can run here against T-CPU: all
// weight formats, blocks of random bytes (scales and codes at their ends among them), rows around whole tiles of W and
// of x. Bit for bit, but in arithmetic `fast`.
#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/common/push.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"
#include "random_weights.h"
#include "ring/cpu/kernel_sets.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

// y = LINEAR(QUANTIZE(x), w), or without QUANTIZE for float weights, and again: of one row a tier may quantize in the
// first product.
ir::Graph product_graph(DType dtype, const Shape& s) {
  ir::Graph graph("product", ir::Stage::kBoth);
  using enum ir::BufferClass;
  auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, s.k});
  const auto w = declare(graph, "model.w", kWeight, dtype, {s.m, s.k});
  if (act_dtype(dtype) != DType::kF32) {
    const auto q = declare(graph, "act.q", kActivation, act_dtype(dtype), {ir::kTokens, s.k});
    add_node(graph, ir::Op::QUANTIZE, {x}, {q});
    x = q;
  }
  for (const char* name : {"act.y", "act.again"})
    add_node(graph, ir::Op::LINEAR, {x, w, ir::kNoBuffer},
             {declare(graph, name, kActivation, DType::kF32, {ir::kTokens, s.m})});
  return graph;
}

// hidden += LINEAR(x) with a bias, x = GLU(gate, up).
ir::Graph sum_graph(DType dtype, const Shape& s, std::uint32_t act) {
  ir::Graph graph("sum", ir::Stage::kBoth);
  using enum ir::BufferClass;
  const auto gate = declare(graph, "act.gate", kActivation, DType::kF32, {ir::kTokens, s.k});
  const auto up = declare(graph, "act.up", kActivation, DType::kF32, {ir::kTokens, s.k});
  const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, s.k});
  const auto w = declare(graph, "model.w", kWeight, dtype, {s.m, s.k});
  const auto bias = declare(graph, "model.bias", kWeight, DType::kF32, {s.m});
  const auto q = declare(graph, "act.q", kActivation, act_dtype(dtype), {ir::kTokens, s.k});
  const auto y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, s.m});
  const auto hidden = declare(graph, "act.hidden", kActivation, DType::kF32, {ir::kTokens, s.m});
  ir::set_attr(add_node(graph, ir::Op::GLU, {gate, up}, {x}), "act", act);
  add_node(graph, ir::Op::QUANTIZE, {x}, {q});
  add_node(graph, ir::Op::LINEAR, {q, w, bias}, {y});
  add_node(graph, ir::Op::ADD, {hidden, y}, {hidden});
  return graph;
}

// Of n_experts matrices [m, k], n_used of which each of n tokens has chosen; to all it gives its row of x, or to each a
// row of its own.
struct ExpertShape {
  std::uint32_t n_experts, m, k, n, n_used;
  bool has_own_rows;
};
void PrintTo(const ExpertShape& s, std::ostream* out) {
  *out << s.n_experts << " of " << s.m << " x " << s.k << " by " << s.n << ", each " << s.n_used
       << (s.has_own_rows ? " by rows of their own" : "");
}

// y0, y1 = MOE_GATE_UP(QUANTIZE(x), w0, w1, ids); with rows of their own y0 = MOE_LINEAR.
ir::Graph experts_graph(const DType (&dtypes)[2], const ExpertShape& s) {
  ir::Graph graph("experts", ir::Stage::kBoth);
  using enum ir::BufferClass;
  const std::uint32_t n_rows = s.has_own_rows ? s.n_used : 1;
  const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, n_rows * s.k}),
             q = declare(graph, "act.q", kActivation, act_dtype(dtypes[0]), {ir::kTokens, n_rows * s.k}),
             ids = declare(graph, "act.ids", kActivation, DType::kI32, {ir::kTokens, s.n_used});
  ir::BufferId w[2], y[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::string number = std::to_string(i);
    w[i] = declare(graph, ("model.w" + number).c_str(), kWeight, dtypes[i], {s.n_experts, s.m, s.k});
    y[i] = declare(graph, ("act.y" + number).c_str(), kActivation, DType::kF32, {ir::kTokens, s.n_used * s.m});
  }
  add_node(graph, ir::Op::QUANTIZE, {x}, {q});
  if (!s.has_own_rows) {
    add_node(graph, ir::Op::MOE_GATE_UP, {q, w[0], w[1], ids}, {y[0], y[1]});
    return graph;
  }
  for (std::uint32_t i = 0; i < 2; ++i)
    ir::set_attr(add_node(graph, ir::Op::MOE_LINEAR, {q, w[i], ids}, {y[i]}), "rows", s.n_used);
  return graph;
}

// y0, y1, y2 = RMS_NORM_FUSED_QKV(x), of matrices of any types.
ir::Graph norm_graph(const DType (&dtypes)[3], const Shape& s) {
  ir::Graph graph("norm", ir::Stage::kBoth);
  using enum ir::BufferClass;
  const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, s.k});
  const auto norm = declare(graph, "model.norm", kWeight, DType::kF32, {s.k});
  ir::BufferId w[3], y[3];
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i);
    w[i] = declare(graph, ("model.w" + number).c_str(), kWeight, dtypes[i], {s.m, s.k});
    y[i] = declare(graph, ("act.y" + number).c_str(), kActivation, DType::kF32, {ir::kTokens, s.m});
  }
  auto& node = add_node(graph, ir::Op::RMS_NORM_FUSED_QKV,
                        {x, norm, w[0], w[1], w[2], ir::kNoBuffer, ir::kNoBuffer, ir::kNoBuffer}, {y[0], y[1], y[2]});
  ir::set_attr(node, "eps", 1e-5f);
  ir::set_attr(node, "quantize", 1u);
  return graph;
}

// Of Q4_K, Q5_K and Q6_K: codes and sub-scales are the smallest or the largest that there are, all alike in some
// blocks, so that sums are as large as any.
std::vector<std::byte> extreme_blocks(DType dtype, const Shape& s, std::mt19937& rng) {
  std::vector<std::byte> bytes = random_blocks(dtype, s, rng);
  const bool is_q6 = dtype == DType::kQ6_K;
  const std::span all(bytes);
  const std::size_t block = traits(dtype).block_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += block) {
    const bool is_alike = rng() % 2 == 0;
    const auto fill = [&](std::span<std::byte> part, std::byte smallest, std::byte largest) {
      const bool is_largest = rng() % 2 == 0;
      for (auto& byte : part) byte = (is_alike ? is_largest : rng() % 2 == 0) ? largest : smallest;
    };
    const auto codes = is_q6 ? all.subspan(at, 192) : all.subspan(at + 16, block - 16),
               scales = is_q6 ? all.subspan(at + 192, 16) : all.subspan(at + 4, 12);
    fill(codes, std::byte{0}, std::byte{0xFF});
    fill(scales, is_q6 ? std::byte{0x80} : std::byte{0}, is_q6 ? std::byte{0x7F} : std::byte{0xFF});
  }
  return bytes;
}
// Which QUANTIZE makes -127 and 127, in some blocks all alike.
std::vector<float> extreme_rows(const Shape& s, std::mt19937& rng) {
  std::vector<float> x(std::size_t{s.n} * s.k);
  for (std::size_t at = 0; at < x.size(); at += 256) {
    const bool is_alike = rng() % 2 == 0, is_positive = rng() % 2 == 0;
    for (std::size_t i = at; i < at + 256; ++i) x[i] = (is_alike ? is_positive : rng() % 2 == 0) ? 1.0f : -1.0f;
  }
  return x;
}

class TierProducts : public TierGraphTest {
 protected:
  // A product of random rows, and what T-CPU and the tier make of it.
  struct Case {
    std::vector<std::byte> w;
    std::vector<float> x;
    std::vector<std::byte> wanted, got;
  };
  Case run_both(DType dtype, const Shape& s, bool fast = false, bool is_extreme = false) {
    Case c{is_extreme ? extreme_blocks(dtype, s, rng_) : random_blocks(dtype, s, rng_),
           is_extreme ? extreme_rows(s, rng_) : random_rows(s, rng_),
           {},
           {}};
    const Memory given{{"act.x", bytes_of(c.x)}, {"model.w", c.w}};
    const auto graph = product_graph(dtype, s);
    c.wanted = run_graph(**ring::find_tier("t_cpu"), graph, s.n, given, {"act.y"})["act.y"];
    auto got = run_graph(*GetParam(), graph, s.n, given, {"act.y", "act.again"}, fast);
    EXPECT_EQ(n_different(got["act.y"], got["act.again"]), 0u) << "of the same rows once more";
    c.got = std::move(got["act.y"]);
    return c;
  }

  void compare(DType dtype, const Shape& s, bool is_extreme = false) {
    SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << testing::PrintToString(s));
    const Case c = run_both(dtype, s, false, is_extreme);
    EXPECT_EQ(n_different(c.wanted, c.got), 0u);
  }

  // In `fast` the scales, minimums and values of w and those of x are rounded to 8 bits each, half a bit off on the
  // average and independently of each other: by less than 8 times 2^-9 of what the products are in the square mean,
  // where w is taken as the largest of its 32, and of what they are, since a scale is common to its values.
  void compare_fast(DType dtype, const Shape& s) {
    SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << testing::PrintToString(s));
    const auto [w, x, wanted, got] = run_both(dtype, s, true);
    ASSERT_EQ(wanted.size(), got.size());
    const auto at = [](const std::vector<std::byte>& bytes, std::size_t i) {
      float v;
      std::memcpy(&v, bytes.data() + i * sizeof(v), sizeof(v));
      return v;
    };
    std::vector<float> row(s.k);
    for (std::uint32_t m = 0; m < s.m; ++m) {
      cpu::quant_format(dtype)->dequantize_row(w.data() + m * row_bytes(dtype, s.k), row.data(), s.k);
      for (std::uint32_t t = 0; t < s.n; ++t) {
        double sum = 0;
        for (std::uint32_t k = 0; k < s.k; k += 32) {
          double largest = 0;
          for (std::uint32_t i = k; i < k + 32; ++i) largest = std::max(largest, double{std::abs(row[i])});
          for (std::uint32_t i = k; i < k + 32; ++i) sum += largest * largest * x[t * s.k + i] * x[t * s.k + i];
        }
        const std::size_t i = std::size_t{t} * s.m + m;
        const double y = at(wanted, i);
        ASSERT_NEAR(y, at(got, i), (8 * std::sqrt(sum) + 2 * std::abs(y)) / 512 + 1e-30)
            << "row " << m << " of w, row " << t << " of x";
      }
    }
    EXPECT_GT(n_different(wanted, got), 0u) << "no other arithmetic was used";
  }

  void compare_sums(DType dtype, const Shape& s, std::uint32_t act) {
    SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << testing::PrintToString(s));
    const Memory given{{"act.gate", bytes_of(random_rows(s, rng_))},
                       {"act.up", bytes_of(random_rows(s, rng_))},
                       {"act.hidden", bytes_of(random_rows({1, s.m, s.n}, rng_))},
                       {"model.bias", bytes_of(random_rows({1, s.m, 1}, rng_))},
                       {"model.w", random_blocks(dtype, s, rng_)}};
    const auto graph = sum_graph(dtype, s, act);
    const auto outputs = {"act.x", "act.y", "act.hidden"};
    auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, s.n, given, outputs),
         got = run_graph(*GetParam(), graph, s.n, given, outputs);
    for (const auto* name : outputs) EXPECT_EQ(n_different(wanted[name], got[name]), 0u) << name;
  }

  void compare_normed(const DType (&dtypes)[3], const Shape& s) {
    SCOPED_TRACE(testing::Message() << to_string(dtypes[0]) << " " << to_string(dtypes[1]) << " "
                                    << to_string(dtypes[2]) << " " << testing::PrintToString(s));
    const ring::Tier& cpu = **ring::find_tier("t_cpu");
    Memory given{{"act.x", bytes_of(random_rows(s, rng_))}, {"model.norm", bytes_of(random_rows({1, s.k, 1}, rng_))}};
    for (int i = 0; i < 3; ++i) given["model.w" + std::to_string(i)] = random_blocks(dtypes[i], s, rng_);
    const auto graph = norm_graph(dtypes, s);
    const auto outputs = {"act.y0", "act.y1", "act.y2"};
    auto wanted = run_graph(cpu, graph, s.n, given, outputs), got = run_graph(*GetParam(), graph, s.n, given, outputs);
    for (const auto* name : outputs) EXPECT_EQ(n_different(wanted[name], got[name]), 0u) << name;
  }

  // Experts by a crooked distribution, so that some have many rows and some none; one of each hundred does not exist.
  std::vector<std::int32_t> random_ids(const ExpertShape& s) {
    std::vector<std::int32_t> ids(std::size_t{s.n} * s.n_used);
    for (auto& id : ids) id = static_cast<std::int32_t>(rng_() % s.n_experts * (rng_() % s.n_experts) / s.n_experts);
    for (std::size_t i = 50; i < ids.size(); i += 100) ids[i] = static_cast<std::int32_t>(s.n_experts);
    return ids;
  }

  void compare_experts(const DType (&dtypes)[2], const ExpertShape& s) {
    SCOPED_TRACE(testing::Message() << to_string(dtypes[0]) << " " << to_string(dtypes[1]) << " "
                                    << testing::PrintToString(s));
    Memory given{{"act.x", bytes_of(random_rows({1, s.k, s.n * (s.has_own_rows ? s.n_used : 1)}, rng_))},
                 {"act.ids", bytes_of(random_ids(s))}};
    for (int i = 0; i < 2; ++i)
      given["model.w" + std::to_string(i)] = random_blocks(dtypes[i], {s.n_experts * s.m, s.k, 1}, rng_);
    const auto graph = experts_graph(dtypes, s);
    const auto outputs = {"act.y0", "act.y1"};
    auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, s.n, given, outputs),
         got = run_graph(*GetParam(), graph, s.n, given, outputs);
    for (const auto* name : outputs) EXPECT_EQ(n_different_numbers(wanted[name], got[name]), 0u) << name;
  }

 private:
  std::mt19937 rng_{7};
};

// A product of each family of kernels, which takes seconds where the GPU is simulated.
TEST_P(TierProducts, OfEachKindHaveTheBitsOfTCpu) {
  using enum DType;
  for (const DType dtype : {kQ4_1, kQ6_K, kFixed16})
    for (const Shape& s : {Shape{33, 768, 1}, {40, 512, 9}, {48, 256, 33}, {2144, 256, 20}, {32, 256, 129}})
      ASSERT_NO_FATAL_FAILURE(compare(dtype, s));
  for (const Shape& s : {Shape{24, 144, 1}, {30, 400, 5}, {64, 272, 41}}) ASSERT_NO_FATAL_FAILURE(compare(kBF16, s));
  for (const Shape& s : {Shape{48, 512, 1}, {48, 256, 7}, {48, 256, 70}})
    ASSERT_NO_FATAL_FAILURE(compare_sums(kQ4_K, s, push::kSilu));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ8_0, kQ6_K}, {33, 512, 1}));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ4_K, kQ4_K}, {48, 256, 12}));
  ASSERT_NO_FATAL_FAILURE(compare_experts({kQ4_K, kQ6_K}, {6, 48, 256, 5, 3, false}));
  ASSERT_NO_FATAL_FAILURE(compare_experts({kQ5_K, kQ5_K}, {3, 144, 256, 60, 2, true}));
}

// Each format, of few rows: a last group that is short, rows that fill no tile.
TEST_P(TierProducts, OfFewRowsHaveTheBitsOfTCpu) {
  for (const DType dtype : weights_of(*GetParam())) {
    for (const Shape& s : {Shape{11, 1280, 2}, {24, 544, 3}})
      if (s.k % traits(dtype).block_elems == 0) {
        ASSERT_NO_FATAL_FAILURE(compare(dtype, s));
      }
  }
}

TEST_P(TierProducts, HaveTheBitsOfTCpu) {
  for (const DType dtype : weights_of(*GetParam())) {
    const std::uint32_t block = traits(dtype).block_elems;
    for (const Shape& s : {Shape{1, 256, 1},
                           {15, 512, 7},
                           {16, 256, 8},
                           {17, 768, 9},
                           {33, 4352, 16},
                           {80, 768, 12},
                           {48, 2048, 17},
                           {208, 1280, 64},
                           {31, 2304, 33},
                           {16, 32, 3},
                           {18, 96, 2},
                           {40, 544, 65},
                           {80, 1280, 70},
                           {208, 1312, 130},
                           {48, 96, 129},
                           {4240, 512, 400},
                           {8032, 1280, 1},
                           {5, 48, 4}}) {
      if (s.k % block != 0) continue;
      // Takes long; it is for the shapes that only many workgroups get.
      if (s.m == 4240 && dtype != DType::kQ4_1 && dtype != DType::kQ4_K && dtype != DType::kQ5_K &&
          dtype != DType::kQ6_K)
        continue;
      ASSERT_NO_FATAL_FAILURE(compare(dtype, s));
    }
  }
}

// Digits of sub-scales, which have a shape for each number of rows of x and of blocks of rows of W: in the order of
// kDigitsShapes, with stages that lack groups at their end, and workgroups of several blocks.
TEST_P(TierProducts, ByDigitsHaveTheBitsOfTCpu) {
  for (const DType dtype : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K})
    for (const Shape& s : {Shape{5120, 256, 8},
                           {2576, 768, 7},
                           {1296, 1536, 2},
                           {5120, 512, 16},
                           {2576, 768, 9},
                           {1296, 1536, 12},
                           {2144, 512, 61},
                           {2208, 768, 30},
                           {4304, 256, 40},
                           {16912, 256, 8}})
      ASSERT_NO_FATAL_FAILURE(compare(dtype, s));
  // So many groups that stages of shared memory come round; of these formats they are no multiple of the warpgroups
  // that take them in turn, so that another warpgroup has each the next time.
  for (const DType dtype : {DType::kQ5_K, DType::kQ6_K}) ASSERT_NO_FATAL_FAILURE(compare(dtype, {4304, 2816, 33}));
}

// Every kernel that a K-quant can have: of one row, few, and for each shape of digits of sub-scales.
TEST_P(TierProducts, OfTheLargestNumbersHaveTheBitsOfTCpu) {
  for (const DType dtype : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K})
    for (const Shape& s : {Shape{80, 768, 1},
                           {80, 768, 7},
                           {5120, 1280, 16},
                           {80, 2304, 32},
                           {80, 2304, 64},
                           {4304, 512, 32},
                           {4304, 512, 64},
                           {80, 512, 130},
                           {4240, 256, 385}})
      ASSERT_NO_FATAL_FAILURE(compare(dtype, s, true));
}

// Digits of sub-scales, in each shape, and the kernels of fewer and of more rows; formats of 32 values.
TEST_P(TierProducts, BetweenAGluAndASumHaveTheBitsOfTCpu) {
  for (const DType dtype : {DType::kQ4_K, DType::kQ6_K})
    for (const Shape& s : {Shape{48, 512, 1},
                           {48, 1280, 7},
                           {80, 2048, 50},
                           {2144, 256, 47},
                           {4304, 256, 64},
                           {48, 512, 70},
                           {4240, 256, 385}})
      ASSERT_NO_FATAL_FAILURE(compare_sums(dtype, s, push::kSilu));
  ASSERT_NO_FATAL_FAILURE(compare_sums(DType::kQ5_K, {80, 512, 20}, push::kGeluTanh));
  ASSERT_NO_FATAL_FAILURE(compare_sums(DType::kQ8_0, {48, 1312, 5}, push::kGeluTanh));
  // By the kernels of 16 and 32 rows: rows after whole tiles, a short last group, several tiles of columns; of these
  // and of one row more blocks than workgroups.
  for (const DType dtype : {DType::kQ4_1, DType::kQ8_0})
    for (const Shape& s : {Shape{40, 1312, 14}, {48, 576, 70}, {24, 2080, 30}, {1608, 96, 70}, {6408, 96, 1}})
      ASSERT_NO_FATAL_FAILURE(compare_sums(dtype, s, push::kSilu));
  ASSERT_NO_FATAL_FAILURE(compare_sums(DType::kQ4_K, {40, 2304, 13}, push::kSilu));
  // By small and by large tiles.
  for (const Shape& s : {Shape{272, 288, 250}, {3216, 96, 400}})
    ASSERT_NO_FATAL_FAILURE(compare_sums(DType::kQ5_1, s, push::kSilu));
}

// Of one row each workgroup of a product makes the normalized row itself: in shared memory where that has room, as it
// has for short rows, else in scratch memory; groups that are no multiple of the warps, a short last one, more than a
// warp holds at once, as several rows may have too; rows after whole tiles; blocks of two tiles; matrices of several
// types, some of floats.
TEST_P(TierProducts, AfterANormHaveTheBitsOfTCpu) {
  using enum DType;
  for (const DType dtype : weights_of(*GetParam())) {
    for (const Shape& s : {Shape{24, 32, 1},
                           {17, 576, 1},
                           {48, 768, 1},
                           {40, 4096, 1},
                           {16, 12288, 1},
                           {2688, 256, 1},
                           {33, 768, 3},
                           {16, 12320, 1},
                           {16, 12288, 2},
                           {16, 12320, 2}})
      if (s.k % traits(dtype).block_elems == 0) {
        ASSERT_NO_FATAL_FAILURE(compare_normed({dtype, dtype, dtype}, s));
      }
  }
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ4_K, kQ6_K}, {48, 2048, 1}));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ6_K, kQ5_K, kQ5_K}, {33, 512, 1}));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ6_K, kQ4_K}, {2688, 4096, 1}));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ8_0, kQ4_K}, {33, 4352, 1}));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kBF16, kQ5_0, kQ6_K}, {32, 1280, 1}));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ4_K, kQ4_K}, {2688, 4096, 1}));
  // Of more rows by digits of sub-scales, all of them or some.
  for (const Shape& s : {Shape{2752, 512, 12}, {80, 768, 40}, {48, 512, 90}, {2832, 256, 385}})
    ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ6_K, kQ4_K}, s));
  ASSERT_NO_FATAL_FAILURE(compare_normed({kQ4_K, kQ8_0, kQ5_K}, {96, 512, 33}));
}

// Few rows of x an expert: blocks of several items a workgroup and of one; fewer blocks than warps, and more than all
// have at once; more rows than an item has; groups that are no multiple of those on their way, a short last one; rows
// after whole tiles; two types, which are products beside each other.
TEST_P(TierProducts, OfExpertsHaveTheBitsOfTCpu) {
  using enum DType;
  for (const DType dtype : weights_of(*GetParam())) {
    if (act_dtype(dtype) == kF32) continue;
    for (const ExpertShape& s : {ExpertShape{6, 48, 768, 5, 3, false},
                                 {6, 16, 256, 19, 2, true},
                                 {5, 272, 2048, 9, 4, true},
                                 {5, 32, 1312, 8, 4, false},
                                 {4, 24, 256, 7, 2, false},
                                 {3, 32, 256, 2, 2, false}}) {
      if (s.k % traits(dtype).block_elems != 0) continue;
      ASSERT_NO_FATAL_FAILURE(compare_experts({dtype, dtype}, s));
    }
  }
  ASSERT_NO_FATAL_FAILURE(compare_experts({kQ4_K, kQ6_K}, {6, 80, 1280, 12, 3, false}));
  ASSERT_NO_FATAL_FAILURE(compare_experts({kQ8_0, kQ5_1}, {6, 80, 96, 12, 3, true}));
  ASSERT_NO_FATAL_FAILURE(compare_experts({kQ4_K, kQ4_K}, {32, 1040, 512, 60, 4, false}));
}

// More rows of x an expert, which T-CUDA takes by digits of sub-scales if a format has them, in items of some rows to
// all of a tile, by workgroups of some blocks of rows of W: more experts than have rows, or rows than an item has;
// parts of blocks.
TEST_P(TierProducts, OfExpertsOfManyRowsHaveTheBitsOfTCpu) {
  using enum DType;
  for (const DType dtype : {kQ4_K, kQ5_K, kQ6_K, kQ4_1, kQ8_0})
    for (const ExpertShape& s : {ExpertShape{7, 144, 256, 160, 2, false}, {20, 48, 768, 170, 3, true}})
      ASSERT_NO_FATAL_FAILURE(compare_experts({dtype, dtype}, s));
  for (const DType dtype : {kQ4_K, kQ6_K})
    ASSERT_NO_FATAL_FAILURE(compare_experts({dtype, dtype}, {3, 144, 1280, 300, 1, false}));
  ASSERT_NO_FATAL_FAILURE(compare_experts({kQ4_K, kQ6_K}, {6, 208, 512, 90, 3, false}));
  ASSERT_NO_FATAL_FAILURE(compare_experts({kQ5_K, kQ5_K}, {25, 1040, 256, 60, 6, true}));
}

// Codes of 16 bits, of W and of x: rows of W around tiles of 16, 64 and 128, rows of x around tiles of 8 to 128, one
// group and more; with what comes before and after.
TEST_P(TierProducts, OfFixed16HaveTheBitsOfTCpu) {
  using enum DType;
  for (const Shape& s :
       {Shape{1, 256, 1}, {16, 512, 1},     {80, 768, 1},     {2688, 256, 1},  {48, 2304, 2},   {33, 768, 3},
        {64, 256, 4},     {65, 512, 5},     {128, 768, 8},    {144, 256, 9},   {48, 512, 15},   {96, 768, 17},
        {40, 256, 33},    {272, 512, 63},   {64, 768, 65},    {130, 512, 70},  {144, 768, 129}, {256, 256, 300},
        {2064, 512, 200}, {3056, 768, 130}, {4400, 512, 200}, {1040, 512, 140}})
    ASSERT_NO_FATAL_FAILURE(compare(kFixed16, s));
  // In each shape of digits, and in tiles of 128 rows of W that have few rows of x.
  for (const Shape& s : {Shape{5120, 256, 8},
                         {2576, 768, 7},
                         {1296, 1536, 2},
                         {5120, 512, 16},
                         {2576, 768, 9},
                         {1296, 1536, 12},
                         {2144, 512, 61},
                         {2208, 2816, 30},
                         {12816, 256, 40},
                         {4304, 768, 1},
                         {272, 8704, 1}})
    ASSERT_NO_FATAL_FAILURE(compare(kFixed16, s));
  for (const Shape& s : {Shape{48, 512, 1},
                         {96, 768, 6},
                         {80, 512, 20},
                         {2144, 256, 47},
                         {144, 256, 70},
                         {208, 512, 130},
                         {1552, 512, 150}})
    ASSERT_NO_FATAL_FAILURE(compare_sums(kFixed16, s, push::kSilu));
  for (const Shape& s :
       {Shape{48, 512, 1}, {33, 768, 1}, {1616, 1280, 1}, {96, 512, 6}, {80, 256, 33}, {144, 256, 130}})
    ASSERT_NO_FATAL_FAILURE(compare_normed({kFixed16, kFixed16, kFixed16}, s));
  for (const std::uint32_t n : {1, 12, 70})
    ASSERT_NO_FATAL_FAILURE(compare_normed({kFixed16, kQ4_K, kBF16}, {48, 512, n}));
  for (const Shape& s : {Shape{784, 512, 140}, {2752, 512, 12}})
    ASSERT_NO_FATAL_FAILURE(compare_normed({kFixed16, kQ4_K, kFixed16}, s));
  for (const ExpertShape& s : {ExpertShape{6, 48, 768, 5, 3, false},
                               {6, 16, 256, 19, 2, true},
                               {4, 24, 256, 7, 2, false},
                               {3, 32, 256, 2, 2, false},
                               {5, 144, 512, 160, 2, true}})
    ASSERT_NO_FATAL_FAILURE(compare_experts({kFixed16, kFixed16}, s));
}

// Shapes of float weights alone: rows of W and of x that are no whole blocks, last groups of 16 to 240, more groups
// than are added up at once. The last eight are so large that T-CUDA takes them in blocks of many rows, by 4, 8 and 16
// rows of x, with one, two, four or eight warps a group.
TEST_P(TierProducts, OfFloatWeightsHaveTheBitsOfTCpu) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (const Shape& s :
         {Shape{9, 16, 1}, {24, 144, 1},    {10, 16656, 1},  {41, 2288, 1},    {18, 112, 2},     {27, 1056, 4},
          {30, 1040, 5},   {50, 4368, 13},  {16, 2048, 16},  {33, 400, 17},    {64, 2064, 64},   {95, 752, 41},
          {601, 400, 13},  {150, 2288, 61}, {470, 272, 250}, {1000, 272, 400}, {1021, 640, 390}, {1531, 1552, 3},
          {121, 592, 130}, {259, 240, 500}, {1030, 304, 37}, {2611, 560, 21}})
      ASSERT_NO_FATAL_FAILURE(compare(dtype, s));
}

// Rows of W around blocks of 128 and 256, rows of x around tiles of 64 and 128, last groups and blocks of x that are
// not whole.
class FastTierProducts : public TierProducts {
 protected:
  // Whether T-CPU's form for arithmetic `fast` has products of its own for such weights.
  static bool rounds_x(DType w, std::uint32_t n) {
    const auto* fast = ring::fast_form_of(**ring::find_kernel_set("auto"));
    return fast != nullptr && fast->rows->rounds_x(w, act_dtype(w), n);
  }
};
TEST_P(FastTierProducts, AreNearTheExactOnesOfTCpu) {
  if (!(*GetParam()->make_ring({.cpu_kernels = {}, .fast = true}))->is_fast())
    GTEST_SKIP() << "this tier has no arithmetic fast here";
  for (const DType dtype : weights_of(*GetParam())) {
    // F32 is exact in both, and no matrix is made fixed16 for arithmetic `fast`.
    if (dtype == DType::kF32 || dtype == DType::kFixed16) continue;
    const std::uint32_t block = traits(dtype).block_elems;
    for (Shape s : {Shape{16, 256, 33},
                    {144, 768, 64},
                    {272, 32, 65},
                    {128, 96, 129},
                    {304, 1376, 40},
                    {48, 2048, 257},
                    {80, 1056, 17}}) {
      if (s.k % block != 0) continue;
      if (block > 1 && s.n <= 64) s.n += 64;  // fewer rows are the exact kernels'
      if (GetParam()->name == "t_cpu" && !rounds_x(dtype, s.n)) {
        const Case c = run_both(dtype, s, true);
        ASSERT_EQ(n_different(c.wanted, c.got), 0u) << "T-CPU has no kernels of it for " << to_string(dtype);
        continue;
      }
      ASSERT_NO_FATAL_FAILURE(compare_fast(dtype, s));
    }
  }
  if (GetParam()->name == "t_cpu") return;
  // A grid for which large blocks pay.
  ASSERT_NO_FATAL_FAILURE(compare_fast(DType::kQ4_K, {17008, 256, 128}));
  ASSERT_NO_FATAL_FAILURE(compare_fast(DType::kBF16, {17011, 64, 128}));
}

TEST_P(FastTierProducts, OfEachKindAreNearTheExactOnesOfTCpu) {
  if (GetParam()->name == "t_cpu" || !(*GetParam()->make_ring({.cpu_kernels = {}, .fast = true}))->is_fast())
    GTEST_SKIP() << "this tier has no arithmetic fast here";
  ASSERT_NO_FATAL_FAILURE(compare_fast(DType::kQ4_K, {144, 256, 65}));
  ASSERT_NO_FATAL_FAILURE(compare_fast(DType::kBF16, {48, 96, 65}));
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierProducts, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
std::vector<const ring::Tier*> tiers_with_t_cpu() {
  auto tiers = other_tiers();
  tiers.push_back(*ring::find_tier("t_cpu"));
  return tiers;
}
INSTANTIATE_TEST_SUITE_P(Tiers, FastTierProducts, ::testing::ValuesIn(tiers_with_t_cpu()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierProducts);

}  // namespace
}  // namespace zinc_rt
