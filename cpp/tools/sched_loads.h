// Implements `zinc-rt sched-test --loads`.
// Thread rule: one thread.
#pragma once

namespace zinc_rt::tools {

// Simulates clients of one GPU under several loads and prints their latencies. The simulation is repeated with several
// limits on the gap between tokens of standard streams.
void print_loads();

}  // namespace zinc_rt::tools
