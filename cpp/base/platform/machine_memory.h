// Reports the size of the machine's memory.
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace zinc_rt {

// Returns the machine's total memory in bytes.
std::uint64_t machine_memory_bytes();

}  // namespace zinc_rt
