// How the process's heap gives memory back to the system.
// Thread rule: call before other threads allocate memory.
#pragma once

namespace zinc_rt {

// From now on free() returns memory to the system: blocks of a megabyte or more at once, and all but 4 MiB of the
// unused end of a heap. Meant for servers that run for weeks and receive large bodies. Without this call glibc keeps up
// to 64 MiB per thread.
void give_free_memory_back();

}  // namespace zinc_rt
