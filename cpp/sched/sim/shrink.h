// Shrinks a failing scenario while it fails in the same way: delta debugging over events, faults, tenants and numbers.
// Thread rule: plain functions.
#pragma once

#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {

// REQUIRES: simulate(scenario) violates `rule`. Runs at most max_runs simulations.
Scenario shrink(Scenario scenario, const std::string& rule, std::uint32_t max_runs = 3000);

}  // namespace zinc_rt::sched::sim
