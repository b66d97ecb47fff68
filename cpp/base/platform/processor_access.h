// Finds which processors the system lets this process use, and which instructions work on them.
// Thread rule: any thread; no state.
#pragma once

#include <vector>

namespace zinc_rt {

// Returns the processors in the calling thread's affinity mask, ascending. If the system reports no mask, returns all
// processors of the machine.
std::vector<int> usable_processors();

// Runs `test` in a child process, so that this process survives if `test` crashes. Returns true if `test` returned
// true. It tells whether an instruction works that the processor reports but a hypervisor may refuse. `test` must not
// call functions that take locks, because other threads may hold any lock when the child is created.
bool survives(bool (*test)());
// Requests permission from the system to use AMX's tile registers in all threads of this process and of its child
// processes. Returns false if the system refuses.
bool allow_tile_registers();

// Return whether a 64-bit ARM processor has the instructions sdot and udot, and smmla and ummla (FEAT_DotProd and
// FEAT_I8MM). They return false on other processors.
bool has_arm_dot_products();
bool has_arm_int8_matrices();

}  // namespace zinc_rt
