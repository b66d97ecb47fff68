// The memory of an open model: every region with its heap and size, fixed when the model is opened.
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
  bool mapped = false;  // used where the model file is mapped: nothing is allocated for it
  std::string note;     // what the size is made of, for people
};

struct MemoryPlan {
  std::vector<MemoryRegion> regions;

  std::uint64_t allocated_bytes() const;  // of the regions that are allocated
  std::uint64_t mapped_bytes() const;
  std::uint64_t bytes(Heap heap) const;  // allocated in one heap
  const MemoryRegion* find(std::string_view name) const;
};

}  // namespace zinc_rt
