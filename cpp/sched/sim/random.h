// Makes a scenario from a seed. Pools and quotas are small, so that exhaustion, preemption, eviction and starvation are
// common. Prefixes are shared and texts repeat, so that the prefix cache is used in nearly every step.
// Thread rule: plain functions.
#pragma once

#include "sched/sim/scenario.h"

namespace zinc_rt::sched::sim {

struct RandomOptions {
  bool with_faults = false;  // device faults, pages that are not given, sinks that block and fail, cancels
  // The other kind: enough pages for all, and requests of any length, class and weight that wait for slots (rule
  // "bound").
  bool is_about_shares = false;
};

Scenario random_scenario(std::uint64_t seed, const RandomOptions& options);

}  // namespace zinc_rt::sched::sim
