// Computes offsets for buffers that may share memory. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace zinc_rt::mem {

// A buffer that is alive from one node to another. Buffers that are never alive at once may share memory.
struct Interval {
  std::uint32_t first = 0, last = 0;  // nodes, inclusive
  std::uint64_t bytes = 0;
};
struct Placement {
  std::vector<std::uint64_t> offsets;  // one per interval; multiples of `alignment`
  std::uint64_t total_bytes = 0;
};
// Greedy by size: the largest first, each at the lowest offset where it overlaps no buffer that is alive at the same
// time.
Placement place(const std::vector<Interval>& intervals, std::uint64_t alignment);

inline std::uint64_t align_up(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace zinc_rt::mem
