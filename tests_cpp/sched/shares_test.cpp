// Long-run shares: backlogged tenants are served by their weights, whatever the sizes of their requests.
#include <gtest/gtest.h>

#include "sched/sim/mix.h"
#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {
namespace {

constexpr std::uint32_t kRequests = 6000;  // of each tenant: more than it can be served

struct Load {
  double weight = 1;
  std::uint32_t n_prompt = 40, n_generate = 40;
};

// Tokens served a tenant, prefill once and decode twice, over a run in which all stay backlogged to the end.
std::vector<double> served(const std::vector<Load>& loads, std::uint32_t n_slots, std::int64_t until_us) {
  Scenario s;
  s.options.n_slots = n_slots;
  s.options.n_pages = 32 * n_slots;
  s.options.max_context = 512;
  s.options.queue_cap = 1u << 20;
  s.options.prefix_cache = false;
  s.options.starvation = kNever / 2;
  std::uint32_t name = 0;
  for (std::uint32_t tenant = 0; tenant < loads.size(); ++tenant) {
    TenantLine line{tenant, {}};
    line.quota.max_concurrent_slots = n_slots;
    line.quota.max_kv_pages = s.options.n_pages;
    line.quota.weight = loads[tenant].weight;
    line.quota.decode_tokens_per_s = line.quota.prefill_tokens_per_s = 1e9;
    s.tenants.push_back(line);
    for (std::uint32_t i = 0; i < kRequests; ++i) {
      EventLine e;
      e.tenant = tenant;
      e.request = name;
      e.submit.seed = name++;
      e.submit.n_prompt = loads[tenant].n_prompt;
      e.submit.max_tokens = loads[tenant].n_generate;
      s.events.push_back(e);
    }
  }
  EventLine stop;
  stop.at = until_us;
  stop.act = Act::kCancelAll;
  s.events.push_back(stop);
  const SimResult result = simulate(s);
  EXPECT_FALSE(result.violation) << result.violation->rule << ": " << result.violation->text;
  std::vector<std::uint32_t> n_ended(loads.size());
  for (std::size_t i = 0; i < result.outcomes.size(); ++i)
    n_ended[i / kRequests] += result.outcomes[i].reason != Finish::kShutdown;
  std::vector<double> tokens;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    EXPECT_LT(n_ended[i], kRequests) << "tenant " << i << " did not stay backlogged";
    tokens.push_back(result.service[i] * loads[i].weight);
  }
  return tokens;
}

// Tokens of each tenant after so long, of streams that no tenant's end in.
std::vector<double> streamed(const std::vector<double>& weights, std::uint32_t n_slots, std::uint32_t n_streams) {
  Scenario s;
  s.options.n_slots = n_slots;
  s.options.max_context = 16'384;
  s.options.n_pages = (n_slots + 2) * s.options.max_context / kPageTokens;
  s.cost = {.base_us = 20'000, .token_us = 100};
  for (std::uint32_t tenant = 0; tenant < weights.size(); ++tenant) {
    Quota quota;
    quota.max_concurrent_slots = n_slots;
    quota.max_kv_pages = s.options.n_pages;
    quota.weight = weights[tenant];
    s.tenants.push_back({tenant, quota});
    for (std::uint32_t i = 0; i < n_streams; ++i) {
      EventLine e;
      e.tenant = tenant;
      e.request = e.submit.seed = tenant * n_streams + i;
      e.at = 1000 * tenant;
      e.submit.max_tokens = 16'000;
      s.events.push_back(e);
    }
  }
  EventLine stop;
  stop.at = 100'000'000;
  stop.act = Act::kCancelAll;
  s.events.push_back(stop);
  const SimResult result = simulate(s);
  EXPECT_FALSE(result.violation) << result.violation->rule << ": " << result.violation->text;
  // A slot changes hands once a turn at most.
  EXPECT_LE(result.counts.yields, n_slots * 100'000'000 / s.options.turn);
  std::vector<double> tokens(weights.size());
  for (std::size_t i = 0; i < result.outcomes.size(); ++i) tokens[i / n_streams] += result.outcomes[i].n_generated;
  return tokens;
}

TEST(Shares, StreamsThatDoNotEndShareTheSlotsByWeight) {
  const std::vector<std::vector<double>> cases = {{1, 1}, {1, 3}, {1, 1, 1}, {1, 2, 0.5}, {1, 1, 1, 1, 1, 1, 1}};
  for (const auto& weights : cases)
    for (const std::uint32_t n_slots : {1u, 4u, 8u}) {
      const auto tokens = streamed(weights, n_slots, 8);
      double sum_tokens = 0, sum_weights = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) sum_tokens += tokens[i], sum_weights += weights[i];
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double part = tokens[i] / sum_tokens, wanted = weights[i] / sum_weights;
        EXPECT_NEAR(part / wanted, 1, 0.15)
            << "tenant " << i << " of " << weights.size() << ", " << n_slots << " slots";
      }
    }
}

TEST(Shares, EqualWeightsAreServedEquallyWhateverTheSizes) {
  const auto tokens = served({{1, 20, 20}, {1, 300, 60}}, 8, 15'000'000);
  RecordProperty("ratio", std::to_string(tokens[1] / tokens[0]));
  EXPECT_NEAR(tokens[1] / tokens[0], 1, 0.05);
}

TEST(Shares, DoubleWeightIsServedDouble) {
  const auto tokens = served({{1, 20, 20}, {1, 300, 60}, {2, 60, 100}}, 8, 30'000'000);
  RecordProperty("ratio", std::to_string(tokens[1] / tokens[0]));
  RecordProperty("double", std::to_string(tokens[2] / tokens[0]));
  EXPECT_NEAR(tokens[1] / tokens[0], 1, 0.05);
  EXPECT_NEAR(tokens[2] / tokens[0], 2, 0.1);
}

}  // namespace
}  // namespace zinc_rt::sched::sim
