#include "base/heap.h"

namespace zinc_rt {

std::string_view to_string(Heap heap) {
  switch (heap) {
    case Heap::kDeviceLocal: return "DEVICE_LOCAL";
    case Heap::kBar: return "BAR";
    case Heap::kHostVisible: return "HOST_VISIBLE";
  }
  return "?";
}

}  // namespace zinc_rt
