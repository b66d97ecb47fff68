// How the process's heap gives memory back to the system.
// Thread rule: before other threads allocate.
#pragma once

namespace zinc_rt {

// For programs that run for weeks and take large bodies: blocks from a megabyte on go back to the system when they are
// freed, and of the free end of a heap all but a few megabytes do. Without it the C library keeps up to 64 MB a thread.
void give_free_memory_back();

}  // namespace zinc_rt
