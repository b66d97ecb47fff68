#include "base/platform/heap.h"

namespace zinc_rt {

// The system's heap has no such thresholds. It keeps freed blocks until the system asks for memory.
void give_free_memory_back() {}

}  // namespace zinc_rt
