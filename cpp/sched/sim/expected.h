// What a scenario expects of its run.
// Thread rule: one thread.
#pragma once

#include "sched/sim/simulator.h"

namespace zinc_rt::sched::sim {

// Reports what the result does not hold of the scenario's expectations (rule "expect").
void check_expected(const Scenario& scenario, SimResult& result, Invariants& invariants);

}  // namespace zinc_rt::sched::sim
