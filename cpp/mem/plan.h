// The memory map of an engine, fixed when it is opened: every region with its heap and size, integers only.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/heap.h"

namespace zinc_rt::mem {

struct Region {
  std::string name;  // "weights.attn_q", "kv_pages", "activations", ...
  Heap heap = Heap::kDeviceLocal;
  std::uint64_t bytes = 0;
  bool mapped = false;  // read in the mapped model file: nothing is allocated for it
  std::string note;     // how the size is computed, for people
};

struct MemoryPlan {
  std::vector<Region> regions;

  std::uint64_t allocated_bytes() const;  // the sum over regions that are allocated
  std::uint64_t mapped_bytes() const;
  std::uint64_t bytes(Heap heap) const;  // allocated in this heap
  const Region* find(std::string_view name) const;
};

// A buffer that lives during a range of nodes. Buffers whose ranges do not overlap may share memory.
struct Interval {
  std::uint32_t first = 0, last = 0;  // nodes, inclusive
  std::uint64_t bytes = 0;
};
struct Placement {
  std::vector<std::uint64_t> offsets;  // one for each interval; multiples of `alignment`
  std::uint64_t total_bytes = 0;
};
// Greedy by size: the largest first, each at the lowest offset where it overlaps no buffer that lives at the same time.
Placement place(const std::vector<Interval>& intervals, std::uint64_t alignment);

inline std::uint64_t align_up(std::uint64_t n, std::uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

}  // namespace zinc_rt::mem
