// Page pool, placement and plan totals.
#include "mem/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "mem/page_pool.h"

namespace zinc_rt::mem {
namespace {

using ::testing::HasSubstr;

TEST(PagePool, TakesLowIdsFirstAllOrNothing) {
  PagePool pool(4);
  EXPECT_EQ(*pool.take(3), (std::vector<std::uint32_t>{0, 1, 2}));
  const auto refused = pool.take(2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("needs 2 pages, 1 free of 4"));
  EXPECT_EQ(pool.n_free(), 1u);
  EXPECT_TRUE(pool.take(0)->empty());
  EXPECT_EQ(*pool.take(1), (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(pool.n_free(), 0u);
}

TEST(PagePool, WrongPagesAreNamedAndTheOthersComeBack) {
  PagePool pool(4);
  const auto pages = *pool.take(3);
  const auto status = pool.give_back(std::vector<std::uint32_t>{0, 3, 9, 0, 2});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, StatusCode::kInternal);
  EXPECT_EQ(pool.n_free(), 3u);  // 0, 2 and the one never taken
  EXPECT_TRUE(pool.give_back(std::vector<std::uint32_t>{1}));
  EXPECT_FALSE(pool.give_back(std::vector<std::uint32_t>{1}));
  EXPECT_EQ(pool.n_free(), 4u);
}

TEST(PagePool, NeverGivesAPageTwice) {
  PagePool pool(50);
  std::mt19937 rng(1);
  std::set<std::uint32_t> held;
  for (int i = 0; i < 5000; ++i) {
    if (rng() % 2 == 0) {
      const auto n = static_cast<std::uint32_t>(rng() % 8);
      const auto pages = pool.take(n);
      EXPECT_EQ(pages.has_value(), n + held.size() <= 50);
      for (const auto page : pages.value_or(std::vector<std::uint32_t>{}))
        EXPECT_TRUE(page < 50 && held.insert(page).second) << page;
    } else if (!held.empty()) {
      const auto page = *std::next(held.begin(), static_cast<std::ptrdiff_t>(rng() % held.size()));
      held.erase(page);
      EXPECT_TRUE(pool.give_back(std::vector{page}));
    }
    EXPECT_EQ(pool.n_free(), 50 - held.size());
  }
}

TEST(PagePool, PagesForTokens) {
  EXPECT_EQ(pages_for(0), 0u);
  EXPECT_EQ(pages_for(1), 1u);
  EXPECT_EQ(pages_for(16), 1u);
  EXPECT_EQ(pages_for(17), 2u);
}

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

TEST(Plan, Totals) {
  MemoryPlan plan;
  plan.regions = {{"a", Heap::kDeviceLocal, 100, false, ""},
                  {"b", Heap::kBar, 20, false, ""},
                  {"c", Heap::kHostVisible, 7, false, ""},
                  {"w", Heap::kHostVisible, 1000, true, ""}};
  EXPECT_EQ(plan.allocated_bytes(), 127u);
  EXPECT_EQ(plan.mapped_bytes(), 1000u);
  EXPECT_EQ(plan.bytes(Heap::kDeviceLocal), 100u);
  EXPECT_EQ(plan.bytes(Heap::kBar), 20u);
  EXPECT_EQ(plan.bytes(Heap::kHostVisible), 7u);
  EXPECT_EQ(plan.find("b")->bytes, 20u);
  EXPECT_EQ(plan.find("z"), nullptr);
}

}  // namespace
}  // namespace zinc_rt::mem
