#include "base/platform/heap.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace zinc_rt {
namespace {

// Bytes that the heaps of all threads hold and nobody uses.
std::size_t free_bytes() {
#ifdef __GLIBC__
  return mallinfo2().fordblks;
#else
  return 0;
#endif
}

// Frees large blocks that have small ones behind them, which stay: a heap between such cannot shrink.
void use_and_free(std::vector<std::string>& kept) {
  std::vector<std::vector<char>> blocks;
  for (std::size_t mb = 1; mb <= 8; ++mb) {
    blocks.emplace_back(mb << 20, 'x');
    kept.emplace_back(200, 'k');
  }
}

TEST(Heap, LargeBlocksGoBackToTheSystem) {
#if defined(ZRT_SANITIZED) || !defined(__GLIBC__)
  GTEST_SKIP() << "the allocator is not glibc's";
#endif
  give_free_memory_back();
  std::vector<std::string> kept;
  kept.reserve(1000);
  const auto before = free_bytes();
  for (int i = 0; i < 3; ++i) use_and_free(kept);
  EXPECT_LT(free_bytes(), before + (8u << 20)) << "of 108 MB that were freed";
}

}  // namespace
}  // namespace zinc_rt
