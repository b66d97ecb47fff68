// A scenario from a seed: small pools and small quotas, so that exhaustion, preemption, eviction and starvation are
// common; shared prefixes and repeated texts, so that the prefix cache is in nearly every step.
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
