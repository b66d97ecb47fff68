#include "base/platform/host_pages.h"

#include <sys/mman.h>

#include <limits>

namespace zinc_rt {

std::byte* allocate_pages(std::uint64_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max()) return nullptr;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

void free_pages(std::byte* memory, std::uint64_t bytes) {
  ::munmap(memory, bytes);
}

void prefer_large_pages([[maybe_unused]] std::byte* memory, [[maybe_unused]] std::uint64_t bytes) {
#ifdef MADV_HUGEPAGE
  ::madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

}  // namespace zinc_rt
