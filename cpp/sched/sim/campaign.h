// Runs random scenarios until enough steps have run or a scenario has failed.
// Thread rule: one thread.
#pragma once

#include <functional>

#include "sched/sim/random.h"
#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {

struct CampaignOptions {
  std::uint64_t seed = 1;  // of the first scenario; the next ones have seed + 1, ...
  std::uint64_t n_steps = 1'000'000;
  RandomOptions random;
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;  // steps
};

struct CampaignResult {
  SimCounts counts;
  std::uint64_t n_scenarios = 0;
  double bound_used = 0;  // the largest SimResult::bound_used
  std::uint64_t failed_seed = 0;
  std::optional<Violation> violation;  // in the scenario of failed_seed
};

CampaignResult run_campaign(const CampaignOptions& options);

}  // namespace zinc_rt::sched::sim
