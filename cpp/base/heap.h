// The three kinds of memory that a tier may have (the memory plan and the rings name them alike).
#pragma once

#include <cstdint>
#include <string_view>

namespace zinc_rt {

enum class Heap : std::uint8_t {
  kDeviceLocal,  // the device's own; the host may not see it
  kBar,          // the device's own, seen by the host: small things that both touch each step
  kHostVisible,  // the host's, seen by the device: staging, step descriptors
};
std::string_view to_string(Heap heap);

}  // namespace zinc_rt
