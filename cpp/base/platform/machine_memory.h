// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace zinc_rt {

// The machine's memory in bytes, whoever uses it.
std::uint64_t machine_memory_bytes();

}  // namespace zinc_rt
