// Reads numbers that the kernel of macOS has by name.
// Thread rule: any thread; no state.
#pragma once

#include <sys/sysctl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace zinc_rt {

// Returns the number of the name, such as "hw.memsize"; 0 if the kernel does not know the name. Numbers have 4 or 8
// bytes.
inline std::uint64_t system_number(const char* name) {
  std::uint64_t value = 0;
  std::size_t size = sizeof value;
  if (sysctlbyname(name, &value, &size, nullptr, 0) != 0) return 0;
  if (size != sizeof(std::uint32_t)) return value;
  std::uint32_t half = 0;
  std::memcpy(&half, &value, sizeof half);
  return half;
}

}  // namespace zinc_rt
