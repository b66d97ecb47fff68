// zinc-rt sched-test --loads.
// Thread rule: one thread.
#pragma once

namespace zinc_rt::tools {

// What clients see of one GPU under some loads, by the gap that standard streams are promised.
void print_loads();

}  // namespace zinc_rt::tools
