// Which processors the system gives this process, and which of their instructions.
// Thread rule: any thread; no state.
#pragma once

#include <vector>

namespace zinc_rt {

// The processors of the calling thread's affinity mask, ascending; all of the machine where the system does not say.
std::vector<int> usable_processors();

// Whether `test` returns true in a process of its own, which it may crash: for instructions that the processor reports
// and a hypervisor may still refuse. `test` must call no functions that take locks, since other threads may hold any
// lock.
bool survives(bool (*test)());
// Asks the system for the tile registers of AMX, for all threads of this process and its children. False: refused.
bool allow_tile_registers();

}  // namespace zinc_rt
