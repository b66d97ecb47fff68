// What a layer does behind attention, on every tier that can run here against T-CPU: the products by gate and up, GLU,
// and down, dense and of experts. A tier may join what is here one after another. Bit for bit.
#include <random>

#include "kernels/common/push.h"
#include "random_weights.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

// d values a row, f of gate and up.
struct Width {
  std::uint32_t d, f;
};
void PrintTo(const Width& w, std::ostream* out) {
  *out << w.d << " to " << w.f;
}

using enum ir::BufferClass;

// hidden += LINEAR(GLU(RMS_NORM_FUSED_MLP_GATE_UP(hidden))).
ir::Graph dense_graph(DType dtype, DType down, const Width& w, std::uint32_t act) {
  ir::Graph graph("feed forward", ir::Stage::kBoth);
  const auto rows = [&](const char* name, std::uint32_t n, DType type = DType::kF32) {
    return declare(graph, name, kActivation, type, {ir::kTokens, n});
  };
  const auto matrix = [&](const char* name, DType type, std::uint32_t m, std::uint32_t k) {
    return declare(graph, name, kWeight, type, {m, k});
  };
  const auto hidden = rows("act.hidden", w.d), gate = rows("act.gate", w.f), up = rows("act.up", w.f),
             glu = rows("act.glu", w.f), y = rows("act.y", w.d);
  auto& products = add_node(graph, ir::Op::RMS_NORM_FUSED_MLP_GATE_UP,
                            {hidden, declare(graph, "model.norm", kWeight, DType::kF32, {w.d}),
                             matrix("model.gate", dtype, w.f, w.d), matrix("model.up", dtype, w.f, w.d)},
                            {gate, up});
  ir::set_attr(products, "eps", 1e-5f);
  ir::set_attr(products, "quantize", 1u);
  ir::set_attr(add_node(graph, ir::Op::GLU, {gate, up}, {glu}), "act", act);
  auto x = glu;
  if (act_dtype(down) != DType::kF32) {
    x = rows("act.q", w.f, act_dtype(down));
    add_node(graph, ir::Op::QUANTIZE, {glu}, {x});
  }
  add_node(graph, ir::Op::LINEAR, {x, matrix("model.down", down, w.d, w.f), ir::kNoBuffer}, {y});
  add_node(graph, ir::Op::ADD, {hidden, y}, {hidden});
  return graph;
}

// The same by experts that are given.
struct Experts {
  std::uint32_t n, n_used;
};
ir::Graph experts_graph(DType dtype, DType down, const Width& w, const Experts& e, std::uint32_t act) {
  ir::Graph graph("experts", ir::Stage::kBoth);
  const auto rows = [&](const char* name, std::uint32_t n, DType type = DType::kF32) {
    return declare(graph, name, kActivation, type, {ir::kTokens, n});
  };
  const auto matrix = [&](const char* name, DType type, std::uint32_t m, std::uint32_t k) {
    return declare(graph, name, kWeight, type, {e.n, m, k});
  };
  const std::uint32_t f = e.n_used * w.f;
  const auto hidden = rows("act.hidden", w.d), gate = rows("act.gate", f), up = rows("act.up", f),
             glu = rows("act.glu", f), ids = rows("act.ids", e.n_used, DType::kI32),
             weights = rows("act.weights", e.n_used);
  auto x = hidden;
  if (act_dtype(dtype) != DType::kF32) {
    x = rows("act.x", w.d, act_dtype(dtype));
    add_node(graph, ir::Op::QUANTIZE, {hidden}, {x});
  }
  add_node(graph, ir::Op::MOE_GATE_UP,
           {x, matrix("model.gate", dtype, w.f, w.d), matrix("model.up", dtype, w.f, w.d), ids}, {gate, up});
  ir::set_attr(add_node(graph, ir::Op::MOE_SWIGLU, {gate, up}, {glu}), "act", act);
  auto of_glu = glu;
  if (act_dtype(down) != DType::kF32) {
    of_glu = rows("act.q", f, act_dtype(down));
    add_node(graph, ir::Op::QUANTIZE, {glu}, {of_glu});
  }
  add_node(graph, ir::Op::MOE_DOWN_ACC,
           {of_glu, matrix("model.down", down, w.d, w.f), ids, weights, ir::kNoBuffer, hidden}, {hidden});
  return graph;
}

class TierFeedForward : public TierGraphTest {
 protected:
  void compare(const ir::Graph& graph, std::uint32_t n, const Memory& given) {
    const auto outputs = {"act.gate", "act.up", "act.glu", "act.hidden"};
    auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, n, given, outputs),
         got = run_graph(*GetParam(), graph, n, given, outputs);
    for (const auto* name : outputs) EXPECT_EQ(n_different_numbers(wanted[name], got[name]), 0u) << name;
  }
  std::vector<std::byte> floats(std::uint32_t n) { return bytes_of(random_rows({1, n, 1}, rng_)); }

  void compare_dense(DType dtype, DType down, const Width& w, std::uint32_t n, std::uint32_t act) {
    SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << to_string(down) << " " << testing::PrintToString(w)
                                    << ", " << n);
    const Memory given{{"act.hidden", floats(n * w.d)},
                       {"model.norm", floats(w.d)},
                       {"model.gate", random_blocks(dtype, {w.f, w.d, 1}, rng_)},
                       {"model.up", random_blocks(dtype, {w.f, w.d, 1}, rng_)},
                       {"model.down", random_blocks(down, {w.d, w.f, 1}, rng_)}};
    compare(dense_graph(dtype, down, w, act), n, given);
  }
  void compare_experts(DType dtype, DType down, const Width& w, const Experts& e, std::uint32_t n, std::uint32_t act) {
    SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << to_string(down) << " " << testing::PrintToString(w)
                                    << ", " << n << ", " << e.n_used << " of " << e.n);
    std::vector<std::int32_t> ids(n * e.n_used);
    for (auto& id : ids) id = static_cast<std::int32_t>(rng_() % e.n);
    const Memory given{{"act.hidden", floats(n * w.d)},
                       {"act.ids", bytes_of(ids)},
                       {"act.weights", floats(n * e.n_used)},
                       {"model.gate", random_blocks(dtype, {e.n * w.f, w.d, 1}, rng_)},
                       {"model.up", random_blocks(dtype, {e.n * w.f, w.d, 1}, rng_)},
                       {"model.down", random_blocks(down, {e.n * w.d, w.f, 1}, rng_)}};
    compare(experts_graph(dtype, down, w, e, act), n, given);
  }

 private:
  std::mt19937 rng_{11};
};

// Each family of kernels once, which takes seconds where the GPU is simulated.
TEST_P(TierFeedForward, OfEachKindHasTheBitsOfTCpu) {
  using enum DType;
  for (const auto& [gate, down] : {std::pair(kQ4_K, kQ6_K), {kQ8_0, kBF16}, {kF16, kQ5_0}, {kFixed16, kFixed16}}) {
    ASSERT_NO_FATAL_FAILURE(compare_dense(gate, down, {256, 512}, 1, push::kSilu));
    ASSERT_NO_FATAL_FAILURE(compare_dense(gate, down, {256, 256}, 2, push::kGeluTanh));
    ASSERT_NO_FATAL_FAILURE(compare_experts(gate, down, {256, 256}, {4, 2}, 1, push::kSilu));
    ASSERT_NO_FATAL_FAILURE(compare_experts(gate, down, {256, 256}, {4, 2}, 2, push::kSilu));
  }
}

// One row: tiles of gate and up that are fewer than workgroups, as many, and more; no whole tiles; groups that are no
// multiple of the warps, a short last one; two types. And two rows, whose packets stay apart.
TEST_P(TierFeedForward, HasTheBitsOfTCpu) {
  using enum DType;
  for (const DType dtype : weights_of(*GetParam())) {
    const std::uint32_t block = traits(dtype).block_elems;
    for (const Width& w : {Width{256, 256}, {576, 96}, {1312, 288}, {512, 1536}, {32, 4288}, {256, 8704}, {48, 80}})
      if (w.d % block == 0 && w.f % block == 0) {
        ASSERT_NO_FATAL_FAILURE(
            compare_dense(dtype, dtype, w, 1, static_cast<int>(dtype) % 2 == 0 ? push::kSilu : push::kGeluTanh));
      }
    ASSERT_NO_FATAL_FAILURE(compare_dense(dtype, dtype, {256, 512}, 2, push::kSilu));
  }
  for (const auto& [gate, down] :
       {std::pair(kQ4_K, kQ6_K), {kQ8_0, kBF16}, {kF16, kQ5_0}, {kQ6_K, kF32}, {kF32, kQ4_1}})
    ASSERT_NO_FATAL_FAILURE(compare_dense(gate, down, {768, 1280}, 1, push::kSilu));
}

TEST_P(TierFeedForward, OfExpertsHasTheBitsOfTCpu) {
  using enum DType;
  for (const DType dtype : weights_of(*GetParam())) {
    for (const std::uint32_t n : {1u, 2u, 3u})
      ASSERT_NO_FATAL_FAILURE(compare_experts(dtype, dtype, {256, 512}, {5, 3}, n, push::kSilu));
    ASSERT_NO_FATAL_FAILURE(compare_experts(dtype, dtype, {512, 768}, {9, 8}, 1, push::kGeluTanh));
  }
  for (const auto& [gate, down] : {std::pair(kQ4_K, kQ6_K), {kQ8_0, kBF16}, {kF16, kQ5_0}, {kQ6_K, kQ4_1}})
    ASSERT_NO_FATAL_FAILURE(compare_experts(gate, down, {256, 256}, {4, 2}, 1, push::kSilu));
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierFeedForward, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierFeedForward);

}  // namespace
}  // namespace zinc_rt
