// Makes a failing scenario smaller while it still breaks the same rule, so that a person can read it. It uses delta
// debugging over events, faults, tenants and numbers.
// Thread rule: plain functions.
#pragma once

#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {

// Returns the smallest scenario found that still breaks `rule`. REQUIRES: simulate(scenario) breaks it. Runs at most
// max_runs simulations.
Scenario shrink(Scenario scenario, const std::string& rule, std::uint32_t max_runs = 3000);

}  // namespace zinc_rt::sched::sim
