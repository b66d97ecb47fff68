// FLASH_ATTN and FLASH_ATTN_BATCHED against float64 at the edges of pages, chunks and windows; the bits do not depend
// on which pages hold the history, nor on how many queries stand together.
#include "harness.h"

namespace zinc_rt::kernel_test {
namespace {

struct Setup {
  DType type = DType::kF32;
  std::uint32_t n_heads = 4, n_kv_heads = 2, head_dim = 32, v_head_dim = 32, window = 0;
  float softcap = 0;
  std::uint32_t n_slots = 1;
  unsigned page_seed = 0;  // which pages hold the history; 0: in order
  std::uint32_t context = 320;
  std::vector<float> sinks = {};  // one per head, or none
};

// Slots with histories of `context` tokens each, in pages of a pitch of their own.
class History {
 public:
  explicit History(const Setup& s) : s_(s), random_(42) {
    const std::uint32_t per_slot = s.context / 16, n = per_slot * s.n_slots + 3;
    std::vector<std::int32_t> order(n);
    for (std::uint32_t i = 0; i < n; ++i) order[i] = std::int32_t(i);
    std::mt19937 rng(s.page_seed);
    if (s.page_seed != 0) std::ranges::shuffle(order, rng);
    pages_.assign(order.begin(), order.begin() + per_slot * s.n_slots);
    k_ = cache(s.n_kv_heads * s.head_dim, n, k_values_);
    v_ = cache(s.n_kv_heads * s.v_head_dim, n, v_values_);
  }

  Case attention(Op op, const std::vector<float>& q, const std::vector<std::int32_t>& pos,
                 const std::vector<std::int32_t>& slot) const {
    return {op,
            {f32({kTokens, s_.n_heads * s_.head_dim}, q), k_, v_, i32({kTokens}, pos), i32({kTokens}, slot),
             i32({s_.n_slots, s_.context / 16}, pages_), s_.sinks.empty() ? absent() : f32({s_.n_heads}, s_.sinks)},
            {{DType::kF32, {kTokens, s_.n_heads * s_.v_head_dim}}},
            {{"n_heads", s_.n_heads},
             {"n_kv_heads", s_.n_kv_heads},
             {"head_dim", s_.head_dim},
             {"v_head_dim", s_.v_head_dim},
             {"scale", 0.17f},
             {"window", s_.window},
             {"softcap", s_.softcap}},
            {std::uint32_t(pos.size()), 0}};
  }

  std::vector<double> expected(const std::vector<float>& q, const std::vector<std::int32_t>& pos,
                               const std::vector<std::int32_t>& slot) const {
    std::vector<double> y;
    for (std::size_t t = 0; t < pos.size(); ++t)
      for (std::uint32_t h = 0; h < s_.n_heads; ++h) {
        const std::uint32_t kv = h / (s_.n_heads / s_.n_kv_heads);
        const int first = s_.window > 0 ? std::max(0, pos[t] - int(s_.window) + 1) : 0;
        std::vector<double> scores;
        for (int j = first; j <= pos[t]; ++j) {
          double s = 0;
          for (std::uint32_t i = 0; i < s_.head_dim; ++i)
            s += double(q[(t * s_.n_heads + h) * s_.head_dim + i]) * at(k_values_, slot[t], j, s_.head_dim, kv, i);
          s *= 0.17f;
          scores.push_back(s_.softcap > 0 ? s_.softcap * std::tanh(s / s_.softcap) : s);
        }
        const double sink = s_.sinks.empty() ? -INFINITY : double(s_.sinks[h]);
        const double top = std::max(*std::ranges::max_element(scores), sink);
        double sum = std::exp(sink - top);
        std::vector<double> out(s_.v_head_dim, 0.0);
        for (std::size_t j = 0; j < scores.size(); ++j) {
          const double p = std::exp(scores[j] - top);
          sum += p;
          for (std::uint32_t i = 0; i < s_.v_head_dim; ++i)
            out[i] += p * at(v_values_, slot[t], first + int(j), s_.v_head_dim, kv, i);
        }
        for (const double o : out) y.push_back(o / sum);
      }
    return y;
  }

  std::vector<float> queries(std::size_t n) const { return Random(7).normal(n * s_.n_heads * s_.head_dim, 1.5); }

 private:
  double at(const std::vector<double>& cache, int slot, int j, std::uint32_t dim, std::uint32_t kv,
            std::uint32_t i) const {
    return cache[((std::size_t(slot) * s_.context + std::size_t(j)) * s_.n_kv_heads + kv) * dim + i];
  }
  // Cells are filled by slot and position, so that two histories with other pages hold the same values.
  Tensor cache(std::uint32_t width, std::uint32_t n_pages, std::vector<double>& wide) {
    const std::uint64_t cell = row_bytes(s_.type, width), pitch = 16 * cell + 64;
    Tensor t{s_.type, {n_pages, 16, width}, Bytes(n_pages * pitch, std::byte{0xff}), pitch};  // absent cells are NaN
    const auto all = weights(random_, s_.type, {s_.n_slots * s_.context, width}, 0.3);
    wide = values(all);
    for (std::uint32_t token = 0; token < s_.n_slots * s_.context; ++token)
      std::memcpy(t.bytes.data() + std::uint64_t(pages_[token / 16]) * pitch + token % 16 * cell,
                  all.bytes.data() + token * cell, cell);
    return t;
  }
  Setup s_;
  Random random_;
  std::vector<std::int32_t> pages_;
  Tensor k_, v_;
  std::vector<double> k_values_, v_values_;
};

const std::vector<std::int32_t> kEdges{0, 1, 15, 16, 17, 127, 128, 129, 254, 255, 256, 257, 300};

void check(const Setup& s, const std::string& what) {
  const History history(s);
  const auto q = history.queries(kEdges.size());
  const std::vector<std::int32_t> slots(kEdges.size(), 0);
  for (const Op op : {Op::FLASH_ATTN, Op::FLASH_ATTN_BATCHED}) {
    const auto c = history.attention(op, q, kEdges, slots);
    expect_near(run(c)[0], history.expected(q, kEdges, slots), 3e-6, 3e-6, what);
  }
}

TEST(Attention, EdgesOfPagesAndChunks) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0}) check({.type = type}, std::string(to_string(type)));
}
TEST(Attention, GroupedHeads) {
  check({.n_heads = 6, .n_kv_heads = 1}, "multi query");
  check({.n_heads = 3, .n_kv_heads = 3, .head_dim = 20, .v_head_dim = 12}, "multi head, odd widths");
  check({.n_heads = 8, .n_kv_heads = 2, .head_dim = 64, .v_head_dim = 32}, "narrow values");
}
TEST(Attention, SlidingWindow) {
  for (const std::uint32_t window : {1u, 16u, 24u, 127u, 128u, 129u, 256u, 1000u})
    check({.window = window}, "window " + std::to_string(window));
}
TEST(Attention, Softcap) {
  check({.softcap = 2.0f}, "softcap");
  check({.type = DType::kF16, .window = 40, .softcap = 50.0f}, "softcap and window");
}

TEST(Attention, SinksTakeAShareAndHaveNoValue) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0})
    for (const std::uint32_t window : {0u, 24u})
      check({.type = type, .window = window, .sinks = {0.0f, 3.0f, -2.0f, 40.0f}}, "sinks");
  check({.softcap = 2.0f, .sinks = {5.0f, -5.0f, 1.0f, 0.5f}}, "sinks are not capped");
}
TEST(Attention, SinksOfMinusInfinityChangeNoBit) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kQ8_0}) {
    const History without({.type = type}), with({.type = type, .sinks = std::vector<float>(4, -INFINITY)});
    const auto q = without.queries(kEdges.size());
    const std::vector<std::int32_t> slots(kEdges.size(), 0);
    for (const Op op : {Op::FLASH_ATTN, Op::FLASH_ATTN_BATCHED})
      EXPECT_EQ(run(with.attention(op, q, kEdges, slots)), run(without.attention(op, q, kEdges, slots)));
  }
}

TEST(Attention, PagesMayLieAnywhere) {
  for (const DType type : {DType::kF32, DType::kQ8_0}) {
    std::vector<Bytes> results;
    for (const unsigned seed : {0u, 1u, 2u}) {
      const History history({.type = type, .n_slots = 2, .page_seed = seed});
      const std::vector<std::int32_t> pos{300, 128, 5, 255}, slot{0, 1, 1, 0};
      const auto q = history.queries(4);
      const auto c = history.attention(Op::FLASH_ATTN_BATCHED, q, pos, slot);
      results.push_back(run(c)[0]);
      expect_near(results.back(), history.expected(q, pos, slot), 3e-6, 3e-6, "two slots");
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

TEST(Attention, QueriesAreIndependentAndBothOpsAgree) {
  const History history({.type = DType::kF16, .window = 200});
  const auto q = history.queries(kEdges.size());
  const std::vector<std::int32_t> slots(kEdges.size(), 0);
  const auto c = history.attention(Op::FLASH_ATTN_BATCHED, q, kEdges, slots);
  expect_rows_independent(c);
  EXPECT_EQ(run(c), run(history.attention(Op::FLASH_ATTN, q, kEdges, slots)));
}

TEST(Attention, BitsDoNotDependOnTheCutsBetweenThreads) {
  for (const std::uint32_t window : {0u, 150u, 700u})
    for (const bool has_sinks : {false, true})
      for (const auto& [pos, slot] : {std::pair{std::vector<std::int32_t>{1100}, std::vector<std::int32_t>{0}},
                                      {{127, 1023}, {1, 0}},
                                      {{3, 1024, 200, 6, 900}, {1, 2, 0, 1, 0}}}) {
        const History history({.type = DType::kF16,
                               .n_heads = 6,
                               .v_head_dim = 20,
                               .window = window,
                               .n_slots = 3,
                               .context = 1120,
                               .sinks = std::vector<float>(has_sinks ? 6 : 0, 0.5f)});
        const auto c = history.attention(Op::FLASH_ATTN, history.queries(pos.size()), pos, slot);
        ring::CpuRing alone(1, **ring::find_kernel_set("ref"), false);
        const auto expected = run_on(c, alone);
        auto sets = fast_sets();
        sets.push_back(*ring::find_kernel_set("ref"));
        for (const auto* set : sets)
          for (const int threads : {1, 2, 3, 8}) {
            ring::CpuRing ring(threads, *set, false);
            EXPECT_EQ(expected, run_on(c, ring)) << set->name << " on " << threads << " threads, window " << window;
          }
      }
}

TEST(Attention, NanInQStaysInItsHead) {
  const History history({});
  auto q = history.queries(1);
  const auto clean = as<float>(run(history.attention(Op::FLASH_ATTN, q, {140}, {0}))[0]);
  q[40] = NAN;  // head 1
  const auto y = as<float>(run(history.attention(Op::FLASH_ATTN, q, {140}, {0}))[0]);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (i / 32 == 1)
      EXPECT_TRUE(std::isnan(y[i]));
    else
      EXPECT_EQ(y[i], clean[i]);
  }
}

}  // namespace
}  // namespace zinc_rt::kernel_test
