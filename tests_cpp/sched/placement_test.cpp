// Placement: which of several replicas a request goes to.
#include "sched/placement.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace zinc_rt::sched {
namespace {

std::uint32_t choose(std::vector<ReplicaLoad> replicas, std::uint64_t key = 7) {
  return choose_replica(replicas, key);
}

std::vector<std::int32_t> counting(std::int32_t first, std::size_t n) {
  std::vector<std::int32_t> ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(Placement, TheLongestCachedPrefixWinsUntilTheBacklogIsMoreThanItSaves) {
  EXPECT_EQ(choose({{0, 0}, {400, 0}}), 1u);
  EXPECT_EQ(choose({{0, 100}, {400, 300}}), 1u);
  EXPECT_EQ(choose({{0, 100}, {400, 500}}), 1u);  // as much as it saves is not more
  EXPECT_EQ(choose({{0, 100}, {400, 501}}), 0u);
  EXPECT_EQ(choose({{150, 100}, {400, 351}}), 0u);  // the other has a part of it, so the hit saves less
  EXPECT_EQ(choose({{150, 100}, {400, 350}}), 1u);
}

TEST(Placement, TheNextBestOfSeveralIsTakenWhereTheBestIsBehind) {
  // The least backlog is that of place 2, but place 1 has half of the prefix and little to do.
  EXPECT_EQ(choose({{1000, 5000}, {500, 200}, {0, 0}}), 1u);
  EXPECT_EQ(choose({{1000, 5000}, {500, 600}, {0, 0}}), 2u);
}

TEST(Placement, WithoutAnyPrefixTheLeastBacklogWins) {
  EXPECT_EQ(choose({{0, 9}, {0, 8}, {0, 10}}), 1u);
}

TEST(Placement, OnePlaceTakesAll) {
  EXPECT_EQ(choose({{0, UINT32_MAX}}), 0u);
}

TEST(Placement, TiesGoByTheKeyAndStayWhenAPlaceIsAdded) {
  std::array<std::uint32_t, 4> n{};
  std::uint32_t n_moved = 0;
  for (std::uint64_t key = 0; key < 4000; ++key) {
    const auto of_four = choose(std::vector<ReplicaLoad>(4), key), of_three = choose(std::vector<ReplicaLoad>(3), key);
    EXPECT_EQ(of_four, choose(std::vector<ReplicaLoad>(4, {12, 90}), key));
    ++n[of_four];
    if (of_four == of_three) continue;
    ++n_moved;
    EXPECT_EQ(of_four, 3u) << "only to the place that is new";
  }
  for (const auto one : n) EXPECT_NEAR(one, 1000, 120);
  EXPECT_EQ(n_moved, n[3]);
}

TEST(Placement, TheKeyIsOfTheTenantTheSaltAndTheFirstFourPages) {
  const auto ids = counting(0, 100);
  const auto key = placement_key("a", "s", ids);
  auto later = ids;
  later[64] = 999;
  EXPECT_EQ(placement_key("a", "s", later), key);
  later = ids;
  later[63] = 999;
  EXPECT_NE(placement_key("a", "s", later), key);
  EXPECT_NE(placement_key("b", "s", ids), key);
  EXPECT_NE(placement_key("a", "t", ids), key);
  EXPECT_NE(placement_key("as", "", ids), placement_key("a", "s", ids));
  // The same number everywhere: routers and engines must agree.
  EXPECT_EQ(placement_key("a", "s", counting(1, 3)), 0x069827E06A8A4316u);
}

}  // namespace
}  // namespace zinc_rt::sched
