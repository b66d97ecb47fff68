// Computes offsets for buffers that may share memory, such as the activations of a graph. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace zinc_rt::mem {

// Describes a buffer and the nodes during which its content is needed. Two buffers may share memory if these ranges do
// not overlap.
struct Interval {
  std::uint32_t first = 0, last = 0;  // index of the first and the last node, both inclusive
  std::uint64_t bytes = 0;
};
struct Placement {
  std::vector<std::uint64_t> offsets;  // one offset per interval, each a multiple of `alignment`
  std::uint64_t total_bytes = 0;
};
// Assigns an offset to each interval. The largest buffers are placed first, each at the lowest offset where it overlaps
// no placed buffer that is needed at the same time.
Placement place(const std::vector<Interval>& intervals, std::uint64_t alignment);

inline std::uint64_t align_up(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace zinc_rt::mem
