#include "mem/placement.h"

#include <algorithm>
#include <numeric>

namespace zinc_rt::mem {

Placement place(const std::vector<Interval>& intervals, std::uint64_t alignment) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return intervals[a].bytes > intervals[b].bytes; });
  Placement placement;
  placement.offsets.assign(intervals.size(), 0);
  std::vector<std::size_t> placed;  // indices of placed intervals, sorted by offset
  for (const std::size_t i : order) {
    const Interval& one = intervals[i];
    std::uint64_t at = 0;
    for (const std::size_t p : placed) {
      const Interval& other = intervals[p];
      if (other.last < one.first || one.last < other.first) continue;
      if (placement.offsets[p] >= at + one.bytes) break;
      at = std::max(at, align_up(placement.offsets[p] + other.bytes, alignment));
    }
    placement.offsets[i] = at;
    placement.total_bytes = std::max(placement.total_bytes, at + one.bytes);
    placed.insert(std::ranges::upper_bound(placed, at, {}, [&](std::size_t p) { return placement.offsets[p]; }), i);
  }
  placement.total_bytes = align_up(placement.total_bytes, alignment);
  return placement;
}

}  // namespace zinc_rt::mem
