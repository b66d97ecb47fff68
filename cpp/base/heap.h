// Lists the kinds of memory that a tier (CPU, or a kind of GPU) may have.
#pragma once

#include <cstdint>
#include <string_view>

namespace zinc_rt {

enum class Heap : std::uint8_t {
  kDeviceLocal,  // device memory that the host cannot access
  kBar,          // device memory that the host can access, for small data that both use in each step
  kHostVisible,  // host memory that the device can access, for staging buffers and step descriptors
};
std::string_view to_string(Heap heap);

}  // namespace zinc_rt
