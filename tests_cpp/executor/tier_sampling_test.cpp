// SAMPLE on every tier that can run here against T-CPU: the same tokens.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/common/sample_params.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

class TierSampling : public TierGraphTest {};

constexpr std::uint32_t kHistory = 300, kBias = 12, kMasks = 2;

ir::Graph sampling_graph(std::uint32_t v) {
  ir::Graph graph("sampling", ir::Stage::kBoth);
  using enum ir::BufferClass;
  const auto logits = declare(graph, "act.logits", kActivation, DType::kF32, {ir::kTokens, v});
  const auto params = declare(graph, "act.params", kActivation, DType::kU32, {ir::kTokens, kSampleParamWords});
  const auto history = declare(graph, "act.history", kActivation, DType::kI32, {kHistory});
  const auto bias = declare(graph, "act.bias", kActivation, DType::kU32, {kBias, 2});
  const auto mask = declare(graph, "act.mask", kActivation, DType::kU32, {kMasks * mask_words_of(v)});
  const auto token = declare(graph, "act.token", kActivation, DType::kI32, {ir::kTokens});
  add_node(graph, ir::Op::SAMPLE, {logits, params, history, bias, mask}, {token});
  return graph;
}

// Row after row another mixture of options.
SampleParams params_of(std::uint32_t row, std::uint32_t v, std::mt19937& rng) {
  SampleParams p{};
  p.seed_lo = static_cast<std::uint32_t>(rng()), p.seed_hi = 3, p.position = row;
  p.temperature = row % 16 == 15 ? 0.0f : row % 3 == 0 ? 1.6f : 1.0f;
  p.top_k = row % 5 == 1 ? 1 + static_cast<std::uint32_t>(rng()) % (v + 50) : 0;
  p.top_p = row % 4 == 1 ? 0.9f : row % 8 == 6 ? 0.99999994f : row % 16 == 10 ? 0.0f : 1.0f;
  p.min_p = row % 6 == 2 ? 0.01f : 0.0f;
  p.typical_p = row % 7 == 3 ? 0.7f : 1.0f;
  p.repetition_penalty = row % 9 == 4 ? 1.3f : 1.0f;
  p.presence_penalty = row % 9 == 5 ? 0.5f : 0.0f;
  p.frequency_penalty = row % 9 == 5 ? 0.25f : 0.0f;
  p.history_begin = row % 20, p.n_prompt = 100, p.n_history = kHistory - 20;
  p.bias_begin = row % 3, p.n_bias = row % 6 == 5 ? kBias - 3 : 0;
  // All rows with a bias, most of those with penalties, and a greedy one have a mask, once without its last words.
  const std::uint32_t words = mask_words_of(v);
  p.mask_begin = row % kMasks * words, p.n_mask_words = row % 5 == 0 || row % 9 == 5 ? words - row % 3 * words / 4 : 0;
  return p;
}

// The first allows most tokens, the second few; both allow the first one.
std::vector<std::uint32_t> random_mask(std::uint32_t v, std::mt19937& rng) {
  const std::uint32_t words = mask_words_of(v);
  std::vector<std::uint32_t> mask(kMasks * words);
  for (std::uint32_t w = 0; w < words; ++w) {
    mask[w] = static_cast<std::uint32_t>(rng() | rng() | rng());
    mask[words + w] = static_cast<std::uint32_t>(rng() & rng() & rng() & rng() & rng());
  }
  mask[0] |= 1, mask[words] |= 1;
  return mask;
}

// Numbers of candidates around the threads of a workgroup; spreads from all alike, where most are candidates, to far
// apart; ties, both zeros, infinities, NaN among the others and everywhere.
TEST_P(TierSampling, DrawsTheTokensOfTCpu) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::uint32_t kRows = 24;
  std::mt19937 rng(3);
  for (const std::uint32_t v : {1u, 31u, 1023u, 1024u, 1025u, 2049u, 9001u})
    for (int kind = 0; kind < 7; ++kind) {
      std::normal_distribution<float> normal(0.0f, kind == 0 ? 0.1f : kind == 1 ? 1.0f : kind == 2 ? 30.0f : 5.0f);
      std::vector<float> logits(std::size_t{kRows} * v);
      for (float& l : logits) {
        l = normal(rng);
        const bool is_some = rng() % 8 == 0;
        if (kind == 3) l = std::round(l);
        if (kind == 4 && is_some) l = rng() % 2 == 0 ? kNan : -kInfinity;
        if (kind == 5) l = is_some ? kNan : rng() % 2 == 0 ? 0.0f : -0.0f;
        if (kind == 6) l = is_some ? kInfinity : kNan;
      }
      std::vector<SampleParams> params;
      for (std::uint32_t row = 0; row < kRows; ++row) params.push_back(params_of(row, v, rng));
      std::vector<std::int32_t> history(kHistory);
      for (auto& id : history) id = static_cast<std::int32_t>(rng() % (v + 3)) - 1;
      std::vector<std::uint32_t> bias;
      for (std::uint32_t i = 0; i < kBias; ++i) {
        const float value = i == 4 ? -kInfinity : normal(rng);
        bias.push_back(static_cast<std::uint32_t>(rng() % (v + 1)));
        std::memcpy(&bias.emplace_back(), &value, 4);
      }
      const Memory given{{"act.logits", bytes_of(logits)},
                         {"act.params", bytes_of(params)},
                         {"act.history", bytes_of(history)},
                         {"act.bias", bytes_of(bias)},
                         {"act.mask", bytes_of(random_mask(v, rng))}};
      const auto graph = sampling_graph(v);
      const auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, kRows, given, {"act.token"});
      const auto got = run_graph(*GetParam(), graph, kRows, given, {"act.token"});
      ASSERT_EQ(got.at("act.token"), wanted.at("act.token")) << v << " candidates, kind " << kind;
    }
}

// A vocabulary as large as models have, all of it likely: sums over many stages.
TEST_P(TierSampling, DrawsTheTokensOfTCpuOfALargeVocabulary) {
  constexpr std::uint32_t kV = 151937, kRows = 6;
  std::mt19937 rng(5);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  std::vector<float> logits(std::size_t{kRows} * kV);
  for (float& l : logits) l = normal(rng);
  std::vector<SampleParams> params;
  for (const std::uint32_t row : {0u, 1u, 3u, 6u, 10u, 15u}) params.push_back(params_of(row, kV, rng));
  const Memory given{
      {"act.logits", bytes_of(logits)}, {"act.params", bytes_of(params)}, {"act.mask", bytes_of(random_mask(kV, rng))}};
  const auto graph = sampling_graph(kV);
  const auto wanted = run_graph(**ring::find_tier("t_cpu"), graph, kRows, given, {"act.token"});
  const auto got = run_graph(*GetParam(), graph, kRows, given, {"act.token"});
  ASSERT_EQ(got.at("act.token"), wanted.at("act.token"));
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierSampling, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TierSampling);

}  // namespace
}  // namespace zinc_rt
