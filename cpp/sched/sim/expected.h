// Compares the result of a simulation with the `expect` lines of its scenario.
// Thread rule: one thread.
#pragma once

#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {

// Reports each expectation of the scenario that the result does not meet (rule "expect").
void check_expected(const Scenario& scenario, SimResult& result, Invariants& invariants);

}  // namespace zinc_rt::sched::sim
