// How the process's heap gives memory back to the system.
// Thread rule: before other threads allocate.
#pragma once

namespace zinc_rt {

// Gives freed memory back to the system: blocks of a megabyte or more at once, and all but a few megabytes of the free
// end of a heap. For programs that run for weeks and take large bodies. Without it the C library keeps up to 64 MB per
// thread.
void give_free_memory_back();

}  // namespace zinc_rt
