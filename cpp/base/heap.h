// The kinds of memory that a tier may have. The memory plan and the rings use the same names.
#pragma once

#include <cstdint>
#include <string_view>

namespace zinc_rt {

enum class Heap : std::uint8_t {
  kDeviceLocal,  // the device's own; the host cannot access it
  kBar,          // the device's own, accessible to the host: for small data that both use in each step
  kHostVisible,  // the host's, accessible to the device: staging, step descriptors
};
std::string_view to_string(Heap heap);

}  // namespace zinc_rt
