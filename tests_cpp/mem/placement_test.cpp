// Buffers that share memory never overlap while both are alive.
#include "mem/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace zinc_rt::mem {
namespace {

TEST(Place, LiveIntervalsNeverOverlap) {
  std::mt19937 rng(2);
  for (int trial = 0; trial < 300; ++trial) {
    const std::uint64_t alignment = trial % 2 == 0 ? 64 : 256;
    std::vector<Interval> intervals(rng() % 40);
    std::uint64_t sum = 0, largest = 0;
    for (auto& one : intervals) {
      one.first = static_cast<std::uint32_t>(rng() % 30);
      one.last = one.first + static_cast<std::uint32_t>(rng() % 8);
      one.bytes = 1 + rng() % 1000;
      sum += align_up(one.bytes, alignment), largest = std::max(largest, one.bytes);
    }
    const auto placed = place(intervals, alignment);
    ASSERT_EQ(placed.offsets.size(), intervals.size());
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      EXPECT_EQ(placed.offsets[i] % alignment, 0u);
      end = std::max(end, placed.offsets[i] + intervals[i].bytes);
      for (std::size_t j = 0; j < i; ++j) {
        if (intervals[j].last < intervals[i].first || intervals[i].last < intervals[j].first) continue;
        EXPECT_TRUE(placed.offsets[i] + intervals[i].bytes <= placed.offsets[j] ||
                    placed.offsets[j] + intervals[j].bytes <= placed.offsets[i])
            << trial << ": " << i << " and " << j;
      }
    }
    EXPECT_EQ(placed.total_bytes, align_up(end, alignment));
    EXPECT_LE(placed.total_bytes, sum);
    EXPECT_GE(placed.total_bytes, largest);
  }
}

TEST(Place, IntervalsThatDoNotMeetShare) {
  const auto placed = place({{0, 1, 100}, {2, 3, 100}, {4, 5, 60}, {1, 2, 10}}, 64);
  EXPECT_EQ(placed.offsets, (std::vector<std::uint64_t>{0, 0, 0, 128}));
  EXPECT_EQ(placed.total_bytes, 192u);
}

}  // namespace
}  // namespace zinc_rt::mem
