// Makes a random scenario from a seed. Pools and quotas are small, so that exhaustion, preemption, eviction and
// starvation are common. Prefixes are shared and texts repeat, so that nearly every step uses the prefix cache.
// Thread rule: plain functions.
#pragma once

#include "sched/sim/scenario.h"

namespace zinc_rt::sched::sim {

struct RandomOptions {
  bool with_faults = false;  // device faults, failing takes of pages, sinks that block and fail, cancels
  // Makes scenarios that check rule "bound": enough pages for all, and requests of any length, class and weight that
  // wait only for slots.
  bool is_about_shares = false;
};

Scenario random_scenario(std::uint64_t seed, const RandomOptions& options);

}  // namespace zinc_rt::sched::sim
