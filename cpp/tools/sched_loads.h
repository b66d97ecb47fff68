// The part of `zinc-rt sched-test` that runs with --loads.
// Thread rule: one thread.
#pragma once

namespace zinc_rt::tools {

// Simulates clients of one GPU under several loads and prints their latencies. It does so for each of several limits on
// the gap between tokens of standard streams.
void print_loads();

}  // namespace zinc_rt::tools
