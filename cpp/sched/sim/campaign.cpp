#include "sched/sim/campaign.h"

#include <algorithm>

namespace zinc_rt::sched::sim {

CampaignResult run_campaign(const CampaignOptions& options) {
  CampaignResult result;
  // A scenario whose requests were all refused has no step. Each scenario counts as one step more, or a campaign of
  // such scenarios would never end.
  for (std::uint64_t seed = options.seed; result.counts.steps + result.n_scenarios < options.n_steps; ++seed) {
    SimResult one = simulate(random_scenario(seed, options.random));
    add(result.counts, one.counts);
    ++result.n_scenarios;
    result.bound_used = std::max(result.bound_used, one.bound_used);
    if (options.on_progress) options.on_progress(std::min(result.counts.steps, options.n_steps), options.n_steps);
    if (!one.violation) continue;
    result.failed_seed = seed;
    result.violation = std::move(one.violation);
    return result;
  }
  return result;
}

}  // namespace zinc_rt::sched::sim
