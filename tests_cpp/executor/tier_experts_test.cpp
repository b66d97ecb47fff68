// The router of experts, and rows that are normalized or multiplied by their gates and then quantized, on every tier
// that can run here against T-CPU. Bit for bit.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "kernels/common/push.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

class TierExperts : public TierGraphTest {};

std::vector<float> normal_floats(std::size_t n, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(rng);
  return values;
}

// Logits of a token: its one value times a weight of each expert. y: its choices' products of other values, if has_y.
constexpr std::uint32_t kExpertRows = 16, kExpertWidth = 32;
// What a router may have beyond logits and their softmax.
struct RouterKind {
  std::uint32_t gating = push::kSoftmax, groups = 1, groups_used = 1;
  bool has_bias = false, has_choice_bias = false;
};
ir::Graph router_graph(std::uint32_t e, std::uint32_t n_used, bool renormalize, float scale, bool has_y = false,
                       const RouterKind& kind = {}) {
  ir::Graph graph("router", ir::Stage::kBoth);
  using enum ir::BufferClass;
  const auto x = declare(graph, "act.x", kActivation, DType::kF32, {ir::kTokens, 1});
  const auto w = declare(graph, "model.w", kWeight, DType::kF32, {e, 1});
  const auto logits = declare(graph, "act.logits", kActivation, DType::kF32, {ir::kTokens, e});
  const auto ids = declare(graph, "act.ids", kActivation, DType::kI32, {ir::kTokens, n_used});
  const auto weights = declare(graph, "act.weights", kActivation, DType::kF32, {ir::kTokens, n_used});
  const auto bias = kind.has_bias ? declare(graph, "model.bias", kWeight, DType::kF32, {e}) : ir::kNoBuffer,
             choice_bias =
                 kind.has_choice_bias ? declare(graph, "model.choice_bias", kWeight, DType::kF32, {e}) : ir::kNoBuffer;
  auto& node = add_node(graph, ir::Op::MOE_GATE_TOPK, {x, w, bias, choice_bias}, {logits, ids, weights});
  ir::set_attr(node, "gating", kind.gating);
  ir::set_attr(node, "groups", kind.groups);
  ir::set_attr(node, "groups_used", kind.groups_used);
  ir::set_attr(node, "n_used", n_used);
  ir::set_attr(node, "renormalize", std::uint32_t{renormalize});
  ir::set_attr(node, "scale", scale);
  if (!has_y) return graph;
  const auto given = declare(graph, "act.given", kActivation, DType::kF32, {ir::kTokens, kExpertWidth});
  const auto q = declare(graph, "act.q", kActivation, DType::kQ8A32, {ir::kTokens, kExpertWidth});
  const auto experts = declare(graph, "model.experts", kWeight, DType::kQ8_0, {e, kExpertRows, kExpertWidth});
  const auto y = declare(graph, "act.y", kActivation, DType::kF32, {ir::kTokens, n_used * kExpertRows});
  add_node(graph, ir::Op::QUANTIZE, {given}, {q});
  ir::set_attr(add_node(graph, ir::Op::MOE_LINEAR, {q, experts, ids}, {y}), "rows", 1u);
  return graph;
}

struct RouterCase {
  std::uint32_t e, n_used;
};

// Numbers of experts around what lanes of a GPU have in registers, up to all of them chosen; ties, both zeros, rows of
// one value, infinities, and NaN among the others, first, and everywhere.
TEST_P(TierExperts, OfARouterHaveTheBitsOfTCpu) {
  std::mt19937 rng(7);
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::uint32_t kTokens = 3;
  for (const RouterCase& c : {RouterCase{1, 1},
                              {5, 5},
                              {16, 2},
                              {31, 4},
                              {32, 32},
                              {33, 8},
                              {64, 6},
                              {127, 8},
                              {128, 8},
                              {129, 8},
                              {256, 8},
                              {300, 31},
                              {512, 10},
                              {513, 8},
                              {700, 40},
                              {128, 40}})
    for (int kind = 0; kind < 8; ++kind) {
      auto w = normal_floats(c.e, rng);
      for (std::size_t i = 0; i < w.size(); ++i) {
        const bool is_some = rng() % 4 == 0;
        if (kind == 1) w[i] = std::round(2 * w[i]);
        if (kind == 2) w[i] = i % 2 == 0 ? 0.0f : -0.0f;
        if (kind == 3 && is_some) w[i] = kNan;
        if (kind == 4) w[i] = kNan;
        if (kind == 5 && is_some) w[i] = -kInfinity;
        if (kind == 6) w[i] = w[i] * 60.0f;
        if (kind == 7 && (i == 0 || is_some)) w[i] = i == 0 ? kNan : 1.5f;
      }
      const Memory given{{"act.x", bytes_of(std::vector<float>{1.0f, -1.0f, 0.5f})}, {"model.w", bytes_of(w)}};
      const auto graph = router_graph(c.e, c.n_used, kind % 2 == 0, kind < 3 ? 1.0f : 2.5f);
      const auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, kTokens, given, {"act.ids", "act.weights"});
      const auto got = run_graph(*GetParam(), graph, kTokens, given, {"act.ids", "act.weights"});
      ASSERT_EQ(got.at("act.ids"), wanted.at("act.ids")) << c.n_used << " of " << c.e << ", kind " << kind;
      ASSERT_EQ(n_different_numbers(got.at("act.weights"), wanted.at("act.weights")), 0u)
          << c.n_used << " of " << c.e << ", kind " << kind;
    }
}

// Routers with sigmoids, biases and groups; ties, NaN, infinities, and likelihoods whose sum is 0 or too small to divide
// by it.
TEST_P(TierExperts, OfARouterOfEachKindHaveTheBitsOfTCpu) {
  std::mt19937 rng(17);
  constexpr std::uint32_t kTokens = 3;
  for (const RouterKind& router : {RouterKind{push::kSigmoid},
                                   {push::kSoftmax, 1, 1, true},
                                   {push::kSoftmax, 1, 1, false, true},
                                   {push::kSigmoid, 1, 1, true, true},
                                   {push::kSigmoid, 8, 4, false, true},
                                   {push::kSoftmax, 4, 1},
                                   {push::kSigmoid, 32, 9, true, true}})
    for (const RouterCase& c : {RouterCase{32, 8}, {160, 6}, {256, 8}})
      for (int kind = 0; kind < 6; ++kind) {
        auto w = normal_floats(c.e, rng), bias = normal_floats(c.e, rng), choice_bias = normal_floats(c.e, rng);
        for (std::size_t i = 0; i < w.size(); ++i) {
          if (kind == 1) w[i] = std::round(w[i]), bias[i] = 0, choice_bias[i] = std::round(choice_bias[i]);
          if (kind == 2 && rng() % 4 == 0) w[i] = std::numeric_limits<float>::quiet_NaN();
          if (kind == 3 && rng() % 4 == 0) choice_bias[i] = -std::numeric_limits<float>::infinity();
          if (kind >= 4) w[i] -= kind == 4 ? 250.0f : 95.0f;
        }
        Memory given{{"act.x", bytes_of(std::vector<float>{1.0f, -1.0f, 0.5f})}, {"model.w", bytes_of(w)}};
        if (router.has_bias) given["model.bias"] = bytes_of(bias);
        if (router.has_choice_bias) given["model.choice_bias"] = bytes_of(choice_bias);
        const bool is_divided = kind != 1 && kind != 3;
        const auto graph = router_graph(c.e, c.n_used, is_divided, kind < 2 ? 1.0f : 2.5f, false, router);
        const auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, kTokens, given, {"act.ids", "act.weights"});
        const auto got = run_graph(*GetParam(), graph, kTokens, given, {"act.ids", "act.weights"});
        const auto where = [&] {
          return fmt::format("gating {}, {} of {} groups, {} of {} experts, kind {}", router.gating, router.groups_used,
                             router.groups, c.n_used, c.e, kind);
        };
        ASSERT_EQ(got.at("act.ids"), wanted.at("act.ids")) << where();
        ASSERT_EQ(n_different_numbers(got.at("act.weights"), wanted.at("act.weights")), 0u) << where();
      }
}

// The bias of each expert on its rows, and the clamped activation, whether or not a QUANTIZE follows.
TEST_P(TierExperts, BiasesAndTheClampedActivationHaveTheBitsOfTCpu) {
  std::mt19937 rng(19);
  using enum ir::BufferClass;
  constexpr std::uint32_t kUsed = 3, kWidth = 320;
  for (const bool is_quantized : {false, true})
    for (const std::uint32_t n : {1u, 2u, 20u}) {
      ir::Graph graph("biased", ir::Stage::kBoth);
      const auto rows = [&](const char* name, DType dtype, std::uint32_t width) {
        return declare(graph, name, kActivation, dtype, {ir::kTokens, width});
      };
      const auto gate = rows("act.gate", DType::kF32, kUsed * kWidth), up = rows("act.up", DType::kF32, kUsed * kWidth),
                 ids = rows("act.ids", DType::kI32, kUsed), y = rows("act.y", DType::kF32, kUsed * kWidth),
                 bias = declare(graph, "model.bias", kWeight, DType::kF32, {kExpertRows, kWidth});
      add_node(graph, ir::Op::MOE_ADD_BIAS, {gate, ids, bias}, {gate}).inplace = true;
      ir::set_attr(add_node(graph, ir::Op::MOE_SWIGLU, {gate, up}, {y}), "act", std::uint32_t{push::kSwigluOai});
      if (is_quantized) {
        const auto q = rows("act.q", DType::kQ8A32, kUsed * kWidth),
                   w = declare(graph, "model.w", kWeight, DType::kQ8_0, {kExpertRows, kUsed * kWidth});
        add_node(graph, ir::Op::QUANTIZE, {y}, {q});
        add_node(graph, ir::Op::LINEAR, {q, w, ir::kNoBuffer}, {rows("act.out", DType::kF32, kExpertRows)});
      }
      auto gates = normal_floats(std::size_t{n} * kUsed * kWidth, rng),
           ups = normal_floats(std::size_t{n} * kUsed * kWidth, rng);
      for (float& v : gates) v *= 6;
      for (float& v : ups) v *= 6;
      std::vector<std::int32_t> chosen(std::size_t{n} * kUsed);
      for (auto& id : chosen) id = static_cast<std::int32_t>(rng() % (kExpertRows + 1));  // one is none's
      Memory given{{"act.gate", bytes_of(gates)},
                   {"act.up", bytes_of(ups)},
                   {"act.ids", bytes_of(chosen)},
                   {"model.bias", bytes_of(normal_floats(kExpertRows * kWidth, rng))}};
      if (is_quantized) {
        auto& w = given["model.w"];
        w.resize(kExpertRows * row_bytes(DType::kQ8_0, kUsed * kWidth));
        for (auto& byte : w) byte = static_cast<std::byte>(rng() % 0x38);
      }
      const char* name = is_quantized ? "act.out" : "act.y";
      const auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, n, given, {name});
      ASSERT_EQ(run_graph(*GetParam(), graph, n, given, {name}).at(name), wanted.at(name)) << n << " tokens";
    }
}

// Choices that a launch of few tokens sorts by expert, and those of more that another one does: more of an expert than
// an item of products has, some with NaN.
TEST_P(TierExperts, ChoicesMeetTheirExpert) {
  std::mt19937 rng(13);
  for (const RouterCase& c : {RouterCase{1, 1}, {31, 3}, {128, 8}, {512, 10}, {520, 2}})
    for (const std::uint32_t n : {2u, 3u, 32u, 33u}) {
      if (c.e > 128 && n > 3) continue;  // slow where a GPU is simulated
      auto x = normal_floats(n, rng);
      x[n / 2] = std::numeric_limits<float>::quiet_NaN();
      std::vector<std::byte> experts(c.e * kExpertRows * row_bytes(DType::kQ8_0, kExpertWidth));
      for (auto& byte : experts) byte = static_cast<std::byte>(rng() % 0x38);
      const Memory given{{"act.x", bytes_of(x)},
                         {"act.given", bytes_of(normal_floats(std::size_t{n} * kExpertWidth, rng))},
                         {"model.w", bytes_of(normal_floats(c.e, rng))},
                         {"model.experts", experts}};
      const auto graph = router_graph(c.e, c.n_used, true, 1.0f, true);
      const auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, n, given, {"act.ids", "act.y"});
      const auto got = run_graph(*GetParam(), graph, n, given, {"act.ids", "act.y"});
      for (const char* name : {"act.ids", "act.y"})
        ASSERT_EQ(got.at(name), wanted.at(name)) << name << ": " << c.n_used << " of " << c.e << ", " << n << " tokens";
    }
}

// hidden += MOE_SUM(y), or the same of MOE_DOWN_ACC's own products, then q, k and v of its norm.
constexpr std::uint32_t kExperts = 5;
ir::Graph summed_graph(std::span<const DType, 3> types, std::uint32_t d, std::uint32_t k, bool has_scale,
                       bool is_down) {
  ir::Graph graph("summed", ir::Stage::kBoth);
  using enum ir::BufferClass;
  const auto rows = [&](const char* name, DType dtype, std::uint32_t width) {
    return declare(graph, name, kActivation, dtype, {ir::kTokens, width});
  };
  const auto y = rows("act.y", DType::kF32, k * d), ids = rows("act.ids", DType::kI32, k),
             weights = rows("act.weights", DType::kF32, k), z = rows("act.z", DType::kF32, d),
             hidden = rows("act.hidden", DType::kF32, d), q = rows("act.q", DType::kF32, 64),
             key = rows("act.k", DType::kF32, 32), v = rows("act.v", DType::kF32, 32);
  const auto scale = has_scale ? declare(graph, "model.scale", kWeight, DType::kF32, {kExperts}) : ir::kNoBuffer;
  const auto norm = declare(graph, "model.norm", kWeight, DType::kF32, {d}),
             q_w = declare(graph, "model.q", kWeight, types[0], {64, d}),
             k_w = declare(graph, "model.k", kWeight, types[1], {32, d}),
             v_w = declare(graph, "model.v", kWeight, types[2], {32, d});
  if (is_down) {
    const auto x = rows("act.x", DType::kF32, k * kExpertWidth), x_q = rows("act.x_q", DType::kQ8A32, k * kExpertWidth),
               w = declare(graph, "model.experts", kWeight, DType::kQ8_0, {kExperts, d, kExpertWidth});
    add_node(graph, ir::Op::QUANTIZE, {x}, {x_q});
    add_node(graph, ir::Op::MOE_DOWN_ACC, {x_q, w, ids, weights, scale, hidden}, {hidden}).inplace = true;
  } else {
    add_node(graph, ir::Op::MOE_SUM, {y, ids, weights, scale}, {z});
    add_node(graph, ir::Op::ADD, {hidden, z}, {hidden}).inplace = true;
  }
  auto& qkv = add_node(graph, ir::Op::RMS_NORM_FUSED_QKV,
                       {hidden, norm, q_w, k_w, v_w, ir::kNoBuffer, ir::kNoBuffer, ir::kNoBuffer}, {q, key, v});
  ir::set_attr(qkv, "eps", 1e-5f);
  ir::set_attr(qkv, "quantize", 1u);
  return graph;
}

// Rows of all types that products want at once; of more values than a workgroup has threads; fewer choices than are
// asked for at once, and more.
TEST_P(TierExperts, ChoicesAreSummedByTheNormBehindThem) {
  std::mt19937 rng(17);
  struct Case {
    DType types[3];
    std::uint32_t d, k;
  };
  using enum DType;
  for (const Case& c : {Case{{kQ8_0, kQ8_0, kQ8_0}, 32, 1},
                        {{kQ8_0, kQ4_0, kQ8_0}, 800, 8},
                        {{kQ4_K, kQ4_K, kQ6_K}, 256, 3},
                        {{kQ4_K, kQ8_0, kF32}, 2304, 10}})
    for (const std::uint32_t n : {1u, 2u, 3u, 20u}) {
      const bool has_scale = n % 2 == 0;
      std::vector<std::int32_t> ids(n * c.k);
      for (auto& id : ids) id = static_cast<std::int32_t>(rng() % kExperts);
      Memory given{{"act.y", bytes_of(normal_floats(std::size_t{n} * c.k * c.d, rng))},
                   {"act.ids", bytes_of(ids)},
                   {"act.weights", bytes_of(normal_floats(std::size_t{n} * c.k, rng))},
                   {"act.hidden", bytes_of(normal_floats(std::size_t{n} * c.d, rng))},
                   {"model.norm", bytes_of(normal_floats(c.d, rng))}};
      if (has_scale) given["model.scale"] = bytes_of(normal_floats(kExperts, rng));
      for (const auto& [name, type, n_rows] :
           {std::tuple{"model.q", c.types[0], 64u}, {"model.k", c.types[1], 32u}, {"model.v", c.types[2], 32u}}) {
        std::vector<std::byte> w(n_rows * row_bytes(type, c.d));
        for (auto& byte : w) byte = static_cast<std::byte>(rng() % 0x38);
        if (type == kF32) w = bytes_of(normal_floats(std::size_t{n_rows} * c.d, rng));
        given[name] = w;
      }
      std::vector<std::byte> experts(kExperts * c.d * row_bytes(kQ8_0, kExpertWidth));
      for (auto& byte : experts) byte = static_cast<std::byte>(rng() % 0x38);
      given["act.x"] = bytes_of(normal_floats(std::size_t{n} * c.k * kExpertWidth, rng));
      given["model.experts"] = experts;
      for (const bool is_down : {false, true}) {
        const auto graph = summed_graph(c.types, c.d, c.k, has_scale, is_down);
        const auto run = [&](const ring::Tier& tier) {
          return run_graph(tier, graph, n, given,
                           {is_down ? "act.hidden" : "act.z", "act.hidden", "act.q", "act.k", "act.v"});
        };
        const auto wanted = run(**ring::find_tier("t_cpu")), got = run(*GetParam());
        for (const auto& [name, bytes] : wanted)
          ASSERT_EQ(n_different(got.at(name), bytes), 0u)
              << name << " of " << n << " x " << c.d << ", " << c.k << " choices" << (is_down ? ", down" : "");
      }
    }
}

enum class Source { kNorm, kResidualNorm, kGlu, kExpertGlu };

// y = LINEAR(QUANTIZE(h), w) with h = an op of rows a and b.
ir::Graph quantized_graph(Source source, DType w_type, std::uint32_t d) {
  ir::Graph graph("quantized", ir::Stage::kBoth);
  using enum ir::BufferClass;
  const auto rows = [&](const char* name, DType dtype, std::uint32_t width) {
    return declare(graph, name, kActivation, dtype, {ir::kTokens, width});
  };
  const auto a = rows("act.a", DType::kF32, d), b = rows("act.b", DType::kF32, d), h = rows("act.h", DType::kF32, d),
             q = rows("act.q", act_dtype(w_type), d), y = rows("act.y", DType::kF32, 16);
  const auto norm = declare(graph, "model.norm", kWeight, DType::kF32, {d}),
             w = declare(graph, "model.w", kWeight, w_type, {16, d});
  if (source == Source::kNorm) {
    auto& node = add_node(graph, ir::Op::RMS_NORM, {a, norm}, {h});
    ir::set_attr(node, "eps", 1e-5f);
    ir::set_attr(node, "group", d);
  } else if (source == Source::kResidualNorm) {
    auto& node = add_node(graph, ir::Op::RESIDUAL_RMS_NORM, {a, b, norm}, {h, a});
    ir::set_attr(node, "eps", 1e-5f);
    node.inplace = true;
  } else {
    auto& node = add_node(graph, source == Source::kGlu ? ir::Op::GLU : ir::Op::MOE_SWIGLU, {a, b}, {h});
    ir::set_attr(node, "act", 0u);
  }
  add_node(graph, ir::Op::QUANTIZE, {h}, {q});
  add_node(graph, ir::Op::LINEAR, {q, w, ir::kNoBuffer}, {y});
  return graph;
}

// All types of quantized rows; the float rows, and sums in place, are there too.
TEST_P(TierExperts, RowsAreQuantizedByWhatMakesThem) {
  std::mt19937 rng(11);
  for (const Source source : {Source::kNorm, Source::kResidualNorm, Source::kGlu, Source::kExpertGlu})
    for (const DType w_type : {DType::kQ8_0, DType::kQ6_K, DType::kFixed16})
      for (const std::uint32_t d : {32u, 256u, 800u, 2048u, 6144u})
        for (const std::uint32_t n : {1u, 3u}) {
          if (d % traits(w_type).block_elems != 0) continue;
          // Codes of any bits; scales of a half below 1.
          std::vector<std::byte> w(16 * row_bytes(w_type, d));
          for (auto& byte : w) byte = static_cast<std::byte>(rng() % 0x38);
          const Memory given{{"act.a", bytes_of(normal_floats(std::size_t{n} * d, rng))},
                             {"act.b", bytes_of(normal_floats(std::size_t{n} * d, rng))},
                             {"model.norm", bytes_of(normal_floats(d, rng))},
                             {"model.w", w}};
          const auto graph = quantized_graph(source, w_type, d);
          const auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, n, given, {"act.a", "act.h", "act.y"});
          const auto got = run_graph(*GetParam(), graph, n, given, {"act.a", "act.h", "act.y"});
          for (const char* name : {"act.a", "act.h", "act.y"})
            ASSERT_EQ(n_different(got.at(name), wanted.at(name)), 0u)
                << name << " of " << n << " x " << d << ", source " << static_cast<int>(source);
        }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierExperts, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierExperts);

}  // namespace
}  // namespace zinc_rt
