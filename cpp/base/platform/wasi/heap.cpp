#include "base/platform/heap.h"

namespace zinc_rt {

// WebAssembly's memory never shrinks.
void give_free_memory_back() {}

}  // namespace zinc_rt
