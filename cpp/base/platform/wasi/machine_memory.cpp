#include "base/platform/machine_memory.h"

namespace zinc_rt {

// What 32-bit addresses reach. The host may allow less, which an allocation then tells.
std::uint64_t machine_memory_bytes() {
  return std::uint64_t{1} << 32;
}

}  // namespace zinc_rt
