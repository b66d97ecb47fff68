// zinc-rt sched-test --loads.
// Thread rule: one thread.
#pragma once

namespace zinc_rt::tools {

// What clients of one GPU see under some loads, per gap that is promised to standard streams.
void print_loads();

}  // namespace zinc_rt::tools
