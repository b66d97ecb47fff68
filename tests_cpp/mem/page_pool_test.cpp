// Pages are given out once, counted, and come back when the last reference goes.
#include "mem/page_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace zinc_rt::mem {
namespace {

using ::testing::HasSubstr;

TEST(PagePool, TakesLowIdsFirstUntilNoneIsLeft) {
  PagePool pool(3);
  EXPECT_EQ(pool.n_pages(), 3u);
  for (std::uint32_t page = 0; page < 3; ++page) EXPECT_EQ(pool.take(7, 9), page);
  EXPECT_EQ(pool.n_free(), 0u);
  EXPECT_EQ(pool.take(7, 9), kNone);
  EXPECT_EQ(pool.meta(1).ref_count, 1u);
  EXPECT_EQ(pool.meta(1).owner_slot, 7u);
  EXPECT_EQ(pool.meta(1).tenant_id, 9u);
  EXPECT_EQ(pool.meta(1).token_count, 0u);
}

TEST(PagePool, AFreedPageForgetsItsOwner) {
  PagePool pool(2);
  const auto page = pool.take(3, 4);
  pool.set_token_count(page, 16);
  pool.set_owner(page, 5);
  EXPECT_EQ(pool.metas()[page].owner_slot, 5u);
  EXPECT_EQ(pool.metas()[page].token_count, 16u);
  EXPECT_TRUE(pool.add_ref(page));
  EXPECT_TRUE(pool.release(page));
  EXPECT_EQ(pool.meta(page).token_count, 16u);
  EXPECT_EQ(pool.n_free(), 1u);
  EXPECT_TRUE(pool.release(page));
  EXPECT_EQ(pool.n_free(), 2u);
  EXPECT_EQ(pool.meta(page).ref_count, 0u);
  EXPECT_EQ(pool.meta(page).owner_slot, kNone);
  EXPECT_EQ(pool.meta(page).tenant_id, kNone);
  EXPECT_EQ(pool.meta(page).token_count, 0u);
}

TEST(PagePool, FreeAndUnknownPagesAreNamed) {
  PagePool pool(4);
  ASSERT_EQ(pool.take(0, 0), 0u);
  for (const std::uint32_t page : {1u, 4u, kNone}) {
    for (const Status& status : {pool.add_ref(page), pool.release(page)}) {
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, StatusCode::kInternal);
      EXPECT_THAT(status.error().message, HasSubstr(std::to_string(page)));
      EXPECT_THAT(status.error().message, HasSubstr("pool of 4, 3 free"));
    }
  }
  EXPECT_EQ(pool.n_free(), 3u);
  EXPECT_TRUE(pool.release(0));
  EXPECT_FALSE(pool.release(0));
  EXPECT_EQ(pool.n_free(), 4u);
}

TEST(PagePool, CountsAsAMapDoes) {
  PagePool pool(50);
  std::mt19937 rng(1);
  std::map<std::uint32_t, std::uint32_t> held;
  for (int i = 0; i < 20000; ++i) {
    const auto any = held.empty() ? held.end() : std::next(held.begin(), static_cast<long>(rng() % held.size()));
    if (const auto what = rng() % 4; what == 0 || any == held.end()) {
      const auto page = pool.take(0, 0);
      EXPECT_EQ(page == kNone, held.size() == 50);
      if (page == kNone) continue;
      ASSERT_TRUE(held.emplace(page, 1).second) << page;
    } else if (what == 1) {
      EXPECT_TRUE(pool.add_ref(any->first));
      ++any->second;
    } else {
      EXPECT_TRUE(pool.release(any->first));
      if (--any->second == 0) held.erase(any);
    }
    ASSERT_EQ(pool.n_free(), 50 - held.size());
    for (const auto& [page, n] : held) ASSERT_EQ(pool.meta(page).ref_count, n);
  }
}

TEST(PagePool, PagesForTokens) {
  EXPECT_EQ(pages_for(0), 0u);
  EXPECT_EQ(pages_for(1), 1u);
  EXPECT_EQ(pages_for(16), 1u);
  EXPECT_EQ(pages_for(17), 2u);
}

}  // namespace
}  // namespace zinc_rt::mem
