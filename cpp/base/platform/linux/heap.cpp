#include "base/platform/heap.h"

#include <cstdlib>  // defines __GLIBC__ if the C library is glibc

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace zinc_rt {

void give_free_memory_back() {
#ifdef __GLIBC__
  // Setting the thresholds also keeps them constant. Otherwise glibc raises them, up to 32 and 64 MiB, when a large
  // block is freed.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
#endif
}

}  // namespace zinc_rt
