// A scenario from a seed: small pools and small quotas, so that exhaustion, preemption, eviction and starvation are
// common; shared prefixes and repeated texts, so that the prefix cache is in nearly every step.
// Thread rule: plain functions.
#pragma once

#include "sched/sim/scenario.h"

namespace zinc_rt::sched::sim {

struct RandomOptions {
  bool with_faults = false;  // device faults, pages that are not given, sinks that block and fail, cancels
};

Scenario random_scenario(std::uint64_t seed, const RandomOptions& options);

}  // namespace zinc_rt::sched::sim
