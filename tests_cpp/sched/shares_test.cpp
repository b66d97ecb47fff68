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
