#include "base/platform/machine_memory.h"

#include <unistd.h>

#include <algorithm>

namespace zinc_rt {

std::uint64_t machine_memory_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PHYS_PAGES))) *
                            static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  return bytes;
}

}  // namespace zinc_rt
