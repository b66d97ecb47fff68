// Allocates memory for large buffers from the system, in whole pages.
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zinc_rt {

// Returns memory that holds zeros, or null if the system refuses. On Linux and macOS a page takes physical memory only
// once it is touched.
std::byte* allocate_pages(std::uint64_t bytes);
// Frees memory of allocate_pages() of the same size.
void free_pages(std::byte* memory, std::uint64_t bytes);
// Requests large pages for memory of allocate_pages(), which are faster to address. This is only a hint, which systems
// without such a request ignore.
void prefer_large_pages(std::byte* memory, std::uint64_t bytes);

}  // namespace zinc_rt
