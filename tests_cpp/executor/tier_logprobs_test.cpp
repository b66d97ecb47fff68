// LOGPROBS on every tier that has it against T-CPU: the same words.
#include <cmath>
#include <limits>
#include <random>

#include "kernels/common/logprobs.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

class TierLogprobs : public TierGraphTest {
 protected:
  void SetUp() override {
    const auto ring = GetParam()->make_ring({.threads = 2, .cpu_kernels = {}});
    ASSERT_TRUE(ring);
    if (!(*ring)->kernels().has(ir::Op::LOGPROBS)) GTEST_SKIP() << "no kernel of LOGPROBS on " << GetParam()->name;
  }
  static void expect_same(std::uint32_t v, const std::vector<float>& logits, const std::vector<std::int32_t>& picked,
                          const std::vector<LogprobParams>& params, const std::string& what) {
    ir::Graph graph("logprobs", ir::Stage::kBoth);
    using enum ir::BufferClass;
    const auto l = declare(graph, "act.logits", kActivation, DType::kF32, {ir::kTokens, v});
    const auto token = declare(graph, "act.token", kActivation, DType::kI32, {ir::kTokens});
    const auto wanted = declare(graph, "act.params", kActivation, DType::kI32, {ir::kTokens, 2});
    const auto stats = declare(graph, "act.stats", kActivation, DType::kU32, {ir::kTokens, kLogprobWords});
    add_node(graph, ir::Op::LOGPROBS, {l, token, wanted}, {stats});
    const Memory given{
        {"act.logits", bytes_of(logits)}, {"act.token", bytes_of(picked)}, {"act.params", bytes_of(params)}};
    const auto n = static_cast<std::uint32_t>(params.size());
    const auto right = run_graph(**ring::find_tier("t_cpu"), graph, n, given, {"act.stats"});
    const auto got = run_graph(*GetParam(), graph, n, given, {"act.stats"});
    ASSERT_EQ(got.at("act.stats"), right.at("act.stats")) << v << " logits, " << what;
  }
};

// Row after row another number of tokens, of a given token or of the picked one; every fifth row is left out.
LogprobParams params_of(std::uint32_t row, std::uint32_t v) {
  constexpr std::int32_t kTops[] = {5, 20, 0, static_cast<std::int32_t>(kLogprobTop), -1};
  return {kTops[row % 5], row % 2 == 0 ? -1 : static_cast<std::int32_t>(row % v)};
}

// Numbers of logits around the lanes, the threads and the tiles of a workgroup; spreads from all alike to far apart;
// ties, both zeros, infinities, NaN among the others and everywhere.
TEST_P(TierLogprobs, HaveTheWordsOfTCpu) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::uint32_t kRows = 10;
  std::mt19937 rng(3);
  for (const std::uint32_t v : {1u, 15u, 16u, 17u, 511u, 513u, 2047u, 2048u, 2049u, 4097u, 9001u})
    for (int kind = 0; kind < 8; ++kind) {
      std::normal_distribution<float> normal(0.0f, kind == 0 ? 0.1f : kind == 1 ? 300.0f : 5.0f);
      std::vector<float> logits(std::size_t{kRows} * v);
      for (float& l : logits) {
        l = normal(rng);
        const bool is_some = rng() % 8 == 0;
        if (kind == 3) l = std::round(l);
        if (kind == 4 && is_some) l = rng() % 2 == 0 ? kNan : -kInfinity;
        if (kind == 5) l = rng() % 2 == 0 ? 0.0f : -0.0f;
        if (kind == 6) l = is_some ? kInfinity : kNan;
        if (kind == 7) l = is_some ? -kInfinity : kNan;
      }
      std::vector<std::int32_t> picked;
      std::vector<LogprobParams> params;
      for (std::uint32_t row = 0; row < kRows; ++row) {
        picked.push_back(row % 3 == 0 ? -1 : static_cast<std::int32_t>(rng() % v));
        params.push_back(params_of(row, v));
      }
      expect_same(v, logits, picked, params, "kind " + std::to_string(kind));
    }
}

// The most likely tokens stand where few threads see all of them, ascend, descend, or are all equal.
TEST_P(TierLogprobs, FindTheMostLikelyWhereverTheyStand) {
  constexpr std::uint32_t kV = 20000, kRows = 5;
  for (const std::uint32_t step : {1u, 32u, 512u, 1024u}) {
    std::vector<float> logits;
    for (std::uint32_t row = 0; row < kRows; ++row)
      for (std::uint32_t id = 0; id < kV; ++id) {
        const auto at = static_cast<float>(id);
        logits.push_back(row == 0 ? at : row == 1 ? -at : row == 2 ? 1.0f : id % step == 7 % step ? at : -at);
      }
    std::vector<LogprobParams> params(kRows, {static_cast<std::int32_t>(kLogprobTop), -1});
    params[4].n_top = 3;
    expect_same(kV, logits, std::vector<std::int32_t>(kRows, 9), params, "step " + std::to_string(step));
  }
}

// As large as models have.
TEST_P(TierLogprobs, HaveTheWordsOfTCpuOfALargeVocabulary) {
  constexpr std::uint32_t kV = 151937, kRows = 3;
  std::mt19937 rng(5);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(std::size_t{kRows} * kV);
  for (float& l : logits) l = normal(rng);
  expect_same(kV, logits, {1, 151936, -1}, {{5, -1}, {20, -1}, {static_cast<std::int32_t>(kLogprobTop), 7}}, "normal");
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierLogprobs, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierLogprobs);

}  // namespace
}  // namespace zinc_rt
