#include "base/platform/host_pages.h"

#include <cstdlib>
#include <cstring>

namespace zinc_rt {

// The pages of WebAssembly's memory are 64 KiB long, and memory never shrinks. So free pages are kept by the heap.
std::byte* allocate_pages(std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = 4096;
  const std::uint64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (whole < bytes || whole > SIZE_MAX) return nullptr;
  void* memory = std::aligned_alloc(kAlignment, static_cast<std::size_t>(whole));
  if (memory != nullptr) std::memset(memory, 0, static_cast<std::size_t>(whole));
  return static_cast<std::byte*>(memory);
}

void free_pages(std::byte* memory, std::uint64_t) {
  std::free(memory);
}

void prefer_large_pages(std::byte*, std::uint64_t) {}

}  // namespace zinc_rt
