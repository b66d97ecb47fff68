// MemoryPlan lists the memory of an opened model: each region with its heap and size. The plan is fixed when the model
// is opened. `zinc-rt plan` prints it.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/heap.h"

namespace zinc_rt {

struct MemoryRegion {
  std::string name;  // "weights.attn_q", "kv_pages", "activations", ...
  Heap heap = Heap::kDeviceLocal;
  std::uint64_t bytes = 0;
  bool mapped = false;  // the mapped model file itself is used: nothing is allocated
  std::string note;     // how the size was computed, for display
};

struct MemoryPlan {
  std::vector<MemoryRegion> regions;

  std::uint64_t allocated_bytes() const;  // sum over the regions that are not mapped
  std::uint64_t mapped_bytes() const;
  std::uint64_t bytes(Heap heap) const;  // returns the bytes that are allocated in this heap
  const MemoryRegion* find(std::string_view name) const;
};

}  // namespace zinc_rt
