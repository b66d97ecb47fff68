// The prefix cache case by case: what matches, what is evicted and when, growth of partial leaves, checkpoints.
#include "mem/prefix_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <random>

#include "tests_cpp/base/counting_allocator.h"

namespace zinc_rt::mem {
namespace {

using Ids = std::vector<std::int32_t>;

// n tokens: first, first + 1, ...
Ids run(std::int32_t first, std::size_t n) {
  Ids ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PrefixCacheTest : public testing::Test {
 protected:
  ~PrefixCacheTest() override { EXPECT_EQ(cache_.check(), ""); }

  // A child with these tokens whose page only the cache refers to.
  PrefixCache::Node put(PrefixCache::Node parent, const Ids& ids) {
    const auto page = pool_.take(0, 0);
    const auto node = cache_.extend(parent, ids, page);
    EXPECT_TRUE(pool_.release(page));
    EXPECT_EQ(cache_.check(), "");
    return node;
  }
  std::vector<std::uint32_t> path(PrefixCache::Node node) const {
    std::vector<std::uint32_t> pages(cache_.depth(node));
    cache_.path(node, pages);
    return pages;
  }

  PagePool pool_{64};
  PrefixCache cache_{pool_, {1, 2}, 3};
  PrefixCache::Node root_ = cache_.add_scope();
};

// A look gives what a match would give and leaves the order of eviction as it is.
TEST_F(PrefixCacheTest, ALookIsNoUse) {
  const auto a = put(root_, run(0, 16)), b = put(root_, run(100, 16));
  put(a, run(200, 5));
  const Ids text = run(0, 16) + run(200, 9);
  for (const std::size_t n : {0u, 3u, 16u, 20u, 25u}) {
    const auto tokens = std::span(text).first(n);
    const auto looked = std::as_const(cache_).look(root_, tokens), matched = cache_.match(root_, tokens);
    EXPECT_EQ(looked.node, matched.node) << n;
    EXPECT_EQ(looked.n_pages, matched.n_pages) << n;
    EXPECT_EQ(looked.partial_page, matched.partial_page) << n;
    EXPECT_EQ(looked.partial_tokens, matched.partial_tokens) << n;
  }
  cache_.match(root_, run(100, 16));  // b is the last one used
  cache_.look(root_, text);
  EXPECT_TRUE(cache_.evict_one());
  EXPECT_TRUE(cache_.evict_one());
  EXPECT_EQ(cache_.look(root_, text).n_pages, 0u);
  EXPECT_EQ(cache_.look(root_, run(100, 16)).node, b);
}

TEST_F(PrefixCacheTest, MatchesWholePagesAndThenThePartThatFollows) {
  const auto a = put(root_, run(0, 16)), b = put(a, run(100, 16));
  put(b, run(200, 5));
  const Ids text = run(0, 16) + run(100, 16) + run(200, 5);

  auto match = cache_.match(root_, text + run(900, 40));
  EXPECT_EQ(match.node, b);
  EXPECT_EQ(match.n_pages, 2u);
  EXPECT_EQ(match.partial_tokens, 5u);
  EXPECT_EQ(path(b), (std::vector<std::uint32_t>{cache_.page(a), cache_.page(b)}));
  EXPECT_EQ(cache_.parent(b), a);
  EXPECT_EQ(cache_.depth(root_), 0u);
  EXPECT_EQ(cache_.page(root_), kNone);

  // A full page serves for its first tokens when the query ends or turns away within it.
  match = cache_.match(root_, std::span(text).first(31));
  EXPECT_EQ(match.node, a);
  EXPECT_EQ(match.partial_page, cache_.page(b));
  EXPECT_EQ(match.partial_tokens, 15u);
  match = cache_.match(root_, run(0, 3) + run(700, 60));
  EXPECT_EQ(match.node, root_);
  EXPECT_EQ(match.n_pages, 0u);
  EXPECT_EQ(match.partial_page, cache_.page(a));
  EXPECT_EQ(match.partial_tokens, 3u);

  for (const Ids& nothing : {Ids{}, run(50, 50)}) {
    match = cache_.match(root_, nothing);
    EXPECT_EQ(match.node, root_);
    EXPECT_EQ(match.partial_page, kNone);
    EXPECT_EQ(match.partial_tokens, 0u);
  }
}

TEST_F(PrefixCacheTest, TheSameTokensElsewhereAreOtherNodes) {
  const auto other = cache_.add_scope();
  const auto a = put(root_, run(0, 16)), below = put(a, run(0, 16));
  EXPECT_NE(a, below);
  EXPECT_EQ(cache_.match(other, run(0, 16)).node, other);
  EXPECT_EQ(cache_.match(root_, run(0, 16) + run(0, 16)).node, below);
  EXPECT_EQ(cache_.match(root_, run(0, 16) + run(16, 16)).node, a);
}

TEST_F(PrefixCacheTest, TheLongestOfSeveralPartialLeavesIsOffered) {
  for (const std::size_t n : {3, 9, 6}) put(root_, run(0, n) + run(100 * static_cast<std::int32_t>(n), 4));
  EXPECT_EQ(cache_.n_nodes(), 3u);
  EXPECT_EQ(cache_.match(root_, run(0, 16)).partial_tokens, 9u);
  EXPECT_EQ(cache_.match(root_, run(0, 7)).partial_tokens, 7u);
  EXPECT_EQ(cache_.match(root_, run(0, 6) + run(600, 9)).partial_tokens, 10u);
}

TEST_F(PrefixCacheTest, PartialLooksAreBoundedToTheChildrenUsedLast) {
  put(root_, run(0, 5));
  for (std::int32_t i = 1; i < static_cast<std::int32_t>(PrefixCache::kPartialLooks); ++i) put(root_, Ids(4, 1000 * i));
  EXPECT_EQ(cache_.match(root_, run(0, 4)).partial_tokens, 4u);  // the last that is looked at; now the first
  put(root_, Ids(4, -1));
  EXPECT_EQ(cache_.match(root_, run(0, 4)).partial_tokens, 4u);
  EXPECT_EQ(cache_.match(root_, Ids(4, 1000)).partial_tokens, 0u);
  EXPECT_EQ(cache_.match(root_, Ids(4, 2000)).partial_tokens, 4u);
}

TEST_F(PrefixCacheTest, APartialLeafGrowsInPlaceUntilItIsANode) {
  const auto page = pool_.take(0, 0);
  for (std::size_t n = 1; n < 16; ++n) {
    EXPECT_EQ(cache_.extend(root_, run(0, n), page), root_);
    EXPECT_EQ(cache_.n_nodes(), 1u);
    EXPECT_EQ(pool_.meta(page).ref_count, 2u);
    EXPECT_EQ(cache_.match(root_, run(0, 16)).partial_tokens, n);
  }
  EXPECT_EQ(cache_.extend(root_, run(0, 4), page), root_);  // less than is there: nothing is lost
  EXPECT_EQ(cache_.match(root_, run(0, 16)).partial_tokens, 15u);
  const auto node = cache_.extend(root_, run(0, 16), page);
  EXPECT_EQ(cache_.page(node), page);
  EXPECT_EQ(cache_.match(root_, run(0, 16)).node, node);
  EXPECT_EQ(cache_.extend(root_, run(0, 16), page), node);
  EXPECT_EQ(cache_.extend(root_, run(0, 4), page), root_);
  EXPECT_EQ(pool_.meta(page).ref_count, 2u);
  EXPECT_TRUE(pool_.release(page));
}

TEST_F(PrefixCacheTest, APartialLeafThatBecomesLikeAnotherNodeMakesRoom) {
  const auto page = pool_.take(0, 0);
  EXPECT_EQ(cache_.extend(root_, run(0, 7), page), root_);
  const auto full = put(root_, run(0, 16));
  EXPECT_EQ(cache_.n_nodes(), 2u);
  EXPECT_EQ(cache_.extend(root_, run(0, 16), page), full);
  EXPECT_EQ(cache_.n_nodes(), 1u);
  EXPECT_EQ(pool_.meta(page).ref_count, 1u);  // the slot's
  EXPECT_TRUE(pool_.release(page));
}

TEST_F(PrefixCacheTest, TokensThatAChildBeginsWithNeedNoPage) {
  const auto full = put(root_, run(0, 16));
  EXPECT_EQ(put(root_, run(0, 16)), full);
  EXPECT_EQ(put(root_, run(0, 9)), root_);
  put(root_, run(50, 9));
  put(root_, run(50, 8));
  EXPECT_EQ(cache_.n_nodes(), 2u);
  put(root_, run(50, 10));
  EXPECT_EQ(cache_.n_nodes(), 3u);
  EXPECT_EQ(pool_.n_free(), pool_.n_pages() - 3);
}

TEST_F(PrefixCacheTest, WrongTokensAndPagesChangeNothing) {
  const auto page = pool_.take(0, 0), other = pool_.take(0, 0);
  EXPECT_EQ(cache_.extend(root_, {}, page), kNone);
  EXPECT_EQ(cache_.extend(root_, run(0, 17), page), kNone);
  for (const std::uint32_t wrong : {other + 1, pool_.n_pages(), kNone})
    EXPECT_EQ(cache_.extend(root_, run(0, 16), wrong), kNone);
  const auto node = cache_.extend(root_, run(0, 16), page);
  EXPECT_EQ(cache_.extend(root_, run(100, 16), page), kNone);  // another node's page
  EXPECT_EQ(cache_.extend(node, run(0, 16), page), kNone);
  EXPECT_EQ(cache_.extend(root_, run(100, 5), other), root_);
  EXPECT_EQ(cache_.extend(root_, run(101, 6), other), kNone);  // does not continue what the page holds
  EXPECT_EQ(cache_.extend(node, run(100, 6), other), kNone);
  EXPECT_EQ(cache_.n_nodes(), 2u);
  EXPECT_EQ(pool_.meta(page).ref_count, 2u);
}

TEST_F(PrefixCacheTest, EvictsTheLeafUsedLeastRecentlyAndThenItsParents) {
  const auto a = put(root_, run(0, 16)), a1 = put(a, run(100, 16)), b = put(root_, run(50, 16));
  cache_.match(root_, run(0, 16));  // a, which has a child: of no help to a1
  const auto evict = [&] {
    EXPECT_TRUE(cache_.evict_one());
    EXPECT_EQ(cache_.check(), "");
  };
  evict();
  EXPECT_EQ(cache_.match(root_, run(0, 16) + run(100, 16)).node, a);
  EXPECT_EQ(cache_.match(root_, run(50, 16)).node, b);
  EXPECT_EQ(put(a, run(100, 16)), a1);  // the page that went first comes back first
  cache_.match(root_, run(50, 16));
  evict();
  evict();  // a was used, through its child, before b
  EXPECT_EQ(cache_.match(root_, run(0, 16)).node, root_);
  EXPECT_EQ(cache_.match(root_, run(50, 16)).node, b);
  evict();
  EXPECT_FALSE(cache_.evict_one());
  EXPECT_EQ(pool_.n_free(), pool_.n_pages());
}

TEST_F(PrefixCacheTest, PinsHoldTheNodeAndAllAboveIt) {
  const auto a = put(root_, run(0, 16)), b = put(a, run(100, 16));
  put(b, run(200, 16));
  put(root_, run(300, 4));
  EXPECT_EQ(cache_.n_evictable(), 4u);
  cache_.pin(b), cache_.pin(b), cache_.pin(root_);
  EXPECT_EQ(cache_.n_evictable(), 2u);
  while (cache_.evict_one()) EXPECT_EQ(cache_.check(), "");
  EXPECT_EQ(cache_.n_nodes(), 2u);
  cache_.unpin(b);
  EXPECT_EQ(cache_.n_evictable(), 0u);
  const auto c = put(b, run(200, 16));
  cache_.pin(c), cache_.unpin(b);
  EXPECT_EQ(cache_.n_evictable(), 0u);
  EXPECT_EQ(cache_.flush(root_), 0u);
  cache_.unpin(c), cache_.unpin(root_);
  EXPECT_EQ(cache_.n_evictable(), 3u);
  EXPECT_EQ(cache_.flush(root_), 3u);
}

TEST_F(PrefixCacheTest, EvictionGoesOnUntilAPageIsReallyFree) {
  const auto listed = pool_.take(0, 0);  // by a slot that pins nothing
  EXPECT_NE(cache_.extend(root_, run(0, 16), listed), kNone);
  const auto free_soon = cache_.page(put(root_, run(100, 16)));
  EXPECT_TRUE(cache_.evict_one());
  EXPECT_EQ(cache_.n_nodes(), 0u);
  EXPECT_EQ(pool_.meta(free_soon).ref_count, 0u);
  EXPECT_EQ(pool_.meta(listed).ref_count, 1u);
  EXPECT_NE(cache_.extend(root_, run(0, 16), listed), kNone);
  EXPECT_FALSE(cache_.evict_one());
  EXPECT_EQ(cache_.n_nodes(), 0u);
}

TEST_F(PrefixCacheTest, FlushLeavesOtherScopesAndDropGivesTheRootBack) {
  const auto other = cache_.add_scope();
  const auto kept = put(other, run(0, 16));
  const auto a = put(root_, run(0, 16)), b = put(root_, run(100, 16));
  put(put(a, run(200, 16)), run(300, 2)), put(a, run(400, 16)), put(b, run(200, 16));
  cache_.pin(b);
  EXPECT_EQ(cache_.flush(root_), 5u);
  EXPECT_EQ(cache_.match(root_, run(100, 32)).node, b);
  EXPECT_EQ(cache_.match(other, run(0, 16)).node, kept);
  cache_.unpin(b);
  cache_.attach_checkpoint(root_, cache_.lend_checkpoint());
  cache_.drop_scope(root_);
  EXPECT_EQ(cache_.check(), "");
  EXPECT_EQ(cache_.n_nodes(), 1u);
  EXPECT_EQ(cache_.add_scope(), root_);
  EXPECT_EQ(cache_.match(root_, run(100, 16)).node, root_);
  EXPECT_EQ(cache_.checkpoint(root_), kNone);
}

TEST_F(PrefixCacheTest, AFlushOfOneOwnerLeavesWhatOthersBroughtAndWhatThatContinues) {
  const auto put_of = [&](PrefixCache::Node parent, const Ids& ids, std::uint32_t owner) {
    const auto page = pool_.take(0, 0);
    const auto node = cache_.extend(parent, ids, page, owner);
    static_cast<void>(pool_.release(page));
    return node;
  };
  const auto a = put_of(root_, run(0, 16), 1), b = put_of(a, run(100, 16), 1), c = put_of(b, run(200, 16), 2);
  put_of(b, run(300, 16), 1), put_of(put_of(a, run(400, 16), 1), run(500, 3), 1);  // nobody else's are below
  EXPECT_EQ(put_of(root_, run(0, 16), 2), a);                                      // brought by 1 all the same
  EXPECT_EQ(cache_.flush(root_, 3), 0u);
  EXPECT_EQ(cache_.flush(root_, 1), 3u);
  EXPECT_EQ(cache_.match(root_, run(0, 16) + run(100, 16) + run(200, 16)).node, c);
  EXPECT_EQ(cache_.flush(root_, 1), 0u);  // what stayed is 2's from then on
  EXPECT_EQ(cache_.flush(root_, 2), 3u);
  EXPECT_EQ(cache_.n_nodes(), 0u);
  EXPECT_EQ(cache_.check(), "");
}

TEST_F(PrefixCacheTest, AScopeIsUnusedWithoutNodesAndPins) {
  EXPECT_TRUE(cache_.is_unused(root_));
  cache_.pin(root_);
  EXPECT_FALSE(cache_.is_unused(root_));
  const auto node = put(root_, run(0, 16));
  cache_.pin(node);
  cache_.unpin(root_);
  EXPECT_FALSE(cache_.is_unused(root_));
  cache_.unpin(node);
  EXPECT_FALSE(cache_.is_unused(root_));
  EXPECT_EQ(cache_.flush(root_), 1u);
  EXPECT_TRUE(cache_.is_unused(root_));
}

TEST_F(PrefixCacheTest, CheckpointsGoToTheLeastRecentlyUsedLast) {
  const auto a = put(root_, run(0, 16)), b = put(a, run(100, 16)), c = put(b, run(200, 16));
  for (const auto node : {a, b, c}) cache_.attach_checkpoint(node, cache_.lend_checkpoint());
  EXPECT_EQ(cache_.checkpoint(a), 0u);
  auto match = cache_.match(root_, run(0, 16) + run(50, 16));  // a use of a's
  EXPECT_EQ(match.state_node, a);
  EXPECT_EQ(match.state_pages, 1u);
  EXPECT_EQ(cache_.lend_checkpoint(), 1u);  // b's
  EXPECT_EQ(cache_.checkpoint(b), kNone);
  EXPECT_EQ(cache_.lend_checkpoint(), 2u);
  match = cache_.match(root_, run(0, 16) + run(100, 16) + run(200, 16));
  EXPECT_EQ(match.node, c);
  EXPECT_EQ(match.state_node, a);
  EXPECT_EQ(cache_.lend_checkpoint(), 0u);
  EXPECT_EQ(cache_.lend_checkpoint(), kNone);
  EXPECT_EQ(cache_.match(root_, run(0, 16)).state_node, kNone);
  cache_.attach_checkpoint(c, 2);
  cache_.attach_checkpoint(c, 1);  // it has one: 1 is free again
  EXPECT_EQ(cache_.checkpoint(c), 2u);
  cache_.give_back_checkpoint(0);
  EXPECT_TRUE(cache_.evict_one());  // c, and its checkpoint with it
  EXPECT_EQ(cache_.check(), "");
  EXPECT_EQ(cache_.lend_checkpoint(), 2u);
  EXPECT_EQ(cache_.lend_checkpoint(), 0u);
  EXPECT_EQ(cache_.lend_checkpoint(), 1u);
  PrefixCache without(pool_, {1, 2});
  EXPECT_EQ(without.lend_checkpoint(), kNone);
}

TEST(PrefixCacheCollisions, ManyPagesOfOneHashStayApart) {
  constexpr std::uint32_t kPages = 4096;
  PagePool pool(kPages);
  PrefixCache cache(pool, {1, 2}, 0, 0x7);  // 8 hashes: some 500 nodes each
  const auto root = cache.add_scope();
  std::vector<Ids> prefixes{{}};
  std::vector<PrefixCache::Node> nodes{root};
  std::map<Ids, PrefixCache::Node> node_of;
  std::mt19937 rng(3);
  while (nodes.size() <= kPages) {
    const auto parent = rng() % nodes.size();
    Ids ids(16);  // near each other: 16 bits in all
    for (auto& id : ids) id = static_cast<std::int32_t>(rng() % 2);
    const auto page = pool.take(0, 0);
    const auto node = cache.extend(nodes[parent], ids, page);
    const Ids prefix = prefixes[parent] + ids;
    const auto [known, is_new] = node_of.emplace(prefix, node);
    ASSERT_EQ(cache.page(known->second), is_new ? page : cache.page(node));
    if (is_new) {
      prefixes.push_back(prefix);
      nodes.push_back(node);
    }
    ASSERT_TRUE(pool.release(page));
  }
  EXPECT_EQ(cache.check(), "");
  for (int round = 0; round < 2; ++round) {
    std::uint32_t n_found = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto match = cache.match(root, prefixes[i]);
      if (match.n_pages * 16 < prefixes[i].size()) continue;
      EXPECT_EQ(match.node, nodes[i]);
      ++n_found;
    }
    EXPECT_EQ(n_found, cache.n_nodes() + 1);
    for (std::uint32_t i = 0; i < kPages / 2; ++i) ASSERT_TRUE(cache.evict_one() || round == 1);
    EXPECT_EQ(cache.check(), "");
  }
}

TEST(PrefixCacheAllocations, NoneAfterConstruction) {
  ZRT_NEED_ALLOCATION_COUNT();
  constexpr std::uint32_t kPages = 256;
  PagePool pool(kPages);
  PrefixCache cache(pool, {1, 2}, 4);
  const auto root = cache.add_scope(), other = cache.add_scope();
  std::mt19937 rng(4);
  std::array<std::int32_t, 96> ids;
  std::uint32_t n_evicted = 0, n_matched = 0;
  const AllocationCount allocations;
  for (int i = 0; i < 20000; ++i) {
    for (std::size_t k = 0; k < ids.size(); ++k) ids[k] = static_cast<std::int32_t>(k % 16 == 3 ? rng() % 4 : k);
    auto match = cache.match(root, ids);
    n_matched += match.n_pages;
    cache.pin(match.node);
    auto node = match.node;
    for (std::size_t at = std::size_t{match.n_pages} * 16; at < 90; at += 16) {
      if (pool.n_free() == 0) n_evicted += cache.evict_one();
      const auto page = pool.take(0, 0);
      if (page == kNone) break;
      const auto n = std::min<std::size_t>(16, 90 - at);
      const auto next = cache.extend(node, std::span(ids).subspan(at, n), page);
      cache.pin(next), cache.unpin(node);
      node = next;
      if (!pool.release(page)) break;
    }
    if (const auto id = cache.lend_checkpoint(); id != kNone) cache.attach_checkpoint(node, id);
    cache.unpin(node);
    if (i % 1000 == 999) cache.flush(root);
  }
  cache.drop_scope(root), cache.drop_scope(other);
  EXPECT_EQ(allocations.so_far(), 0u);
  EXPECT_GT(n_evicted, 1000u);
  EXPECT_GT(n_matched, 1000u);
  EXPECT_EQ(cache.check(), "");
}

}  // namespace
}  // namespace zinc_rt::mem
