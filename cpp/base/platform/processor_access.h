// Which processors the system gives this process, and which of their instructions.
// Thread rule: any thread; no state.
#pragma once

#include <vector>

namespace zinc_rt {

// The processors in the calling thread's affinity mask, ascending; all of the machine's if the system does not say.
std::vector<int> usable_processors();

// Runs `test` in a process of its own, which it may crash, and returns whether it returned true. Use it for
// instructions that the processor reports but a hypervisor may refuse. `test` must not call functions that take locks,
// because other threads may hold any lock.
bool survives(bool (*test)());
// Asks the system for AMX's tile registers, for all threads of this process and its children. False: refused.
bool allow_tile_registers();

}  // namespace zinc_rt
