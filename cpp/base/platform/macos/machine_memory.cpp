#include "base/platform/machine_memory.h"

#include "base/platform/macos/system_number.h"

namespace zinc_rt {

std::uint64_t machine_memory_bytes() {
  static const std::uint64_t bytes = system_number("hw.memsize");
  return bytes;
}

}  // namespace zinc_rt
