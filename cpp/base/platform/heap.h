// Controls how the process's heap returns memory to the system.
// Thread rule: call before other threads allocate memory.
#pragma once

namespace zinc_rt {

// Makes free() return memory to the system from now on: blocks of a megabyte or more at once, and all but 4 MiB of the
// unused end of a heap. Servers call it, because they run for weeks and receive large bodies. Without it glibc keeps up
// to 64 MiB per thread.
void give_free_memory_back();

}  // namespace zinc_rt
