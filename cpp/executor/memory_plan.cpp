#include "executor/memory_plan.h"

namespace zinc_rt {

std::uint64_t MemoryPlan::allocated_bytes() const {
  std::uint64_t total = 0;
  for (const MemoryRegion& region : regions)
    if (!region.mapped) total += region.bytes;
  return total;
}

std::uint64_t MemoryPlan::mapped_bytes() const {
  std::uint64_t total = 0;
  for (const MemoryRegion& region : regions)
    if (region.mapped) total += region.bytes;
  return total;
}

std::uint64_t MemoryPlan::bytes(Heap heap) const {
  std::uint64_t total = 0;
  for (const MemoryRegion& region : regions)
    if (!region.mapped && region.heap == heap) total += region.bytes;
  return total;
}

const MemoryRegion* MemoryPlan::find(std::string_view name) const {
  for (const MemoryRegion& region : regions)
    if (region.name == name) return &region;
  return nullptr;
}

}  // namespace zinc_rt
