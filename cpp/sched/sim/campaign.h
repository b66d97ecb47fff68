// A campaign simulates random scenarios of the scheduler one after another, until enough steps have run or a scenario
// breaks a rule. `zinc-rt sched-test` and tests run campaigns.
// Thread rule: one thread.
#pragma once

#include <functional>

#include "sched/sim/random.h"
#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {

struct CampaignOptions {
  std::uint64_t seed = 1;  // seed of the first scenario; the following scenarios use seed + 1, seed + 2, ...
  std::uint64_t n_steps = 1'000'000;
  RandomOptions random;
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;  // called after each scenario; in steps
};

struct CampaignResult {
  SimCounts counts;
  std::uint64_t n_scenarios = 0;
  double bound_used = 0;  // the largest SimResult::bound_used of all scenarios
  std::uint64_t failed_seed = 0;
  std::optional<Violation> violation;  // the rule that the scenario of failed_seed broke; empty if no rule was broken
};

CampaignResult run_campaign(const CampaignOptions& options);

}  // namespace zinc_rt::sched::sim
