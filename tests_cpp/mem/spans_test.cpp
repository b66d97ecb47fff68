// Lists of spans: parts, what two have in common, the hash of a page, and what a page keeps.
#include "mem/spans.h"

#include <gmock/gmock.h>

#include <numeric>

namespace zinc_rt::mem {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

std::vector<std::int32_t> run(std::int32_t first, std::size_t n) {
  std::vector<std::int32_t> ids(n);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(Spans, PartsAreViewsOfTheSamePositions) {
  const SpanList list{SpanView(run(10, 40))};
  EXPECT_EQ(list.size(), 40u);
  EXPECT_THAT(list.part(3, 2).ids(), ElementsAre(13, 14));
  EXPECT_THAT(list.view().from(37).ids(), ElementsAre(47, 48, 49));
  EXPECT_THAT(list.view().part(5, 30).first(1).ids(), ElementsAre(15));
  EXPECT_EQ(list.part(7, 20).ids().data(), list.ids().data() + 7);
  EXPECT_TRUE(list.part(40, 0).empty());
  EXPECT_TRUE(SpanView().empty());
}

TEST(Spans, ListsGrowByPartsOfOthersInTheRoomThatTheyHave) {
  SpanList prompt{SpanView(run(1, 20))}, step;
  step.reserve(6);
  const auto* memory = step.ids().data();
  step.append(prompt.part(4, 3));
  step.push_back(99);
  step.append(prompt.part(0, 2));
  EXPECT_EQ(step.ids().data(), memory);
  EXPECT_THAT(step.ids(), ElementsAre(5, 6, 7, 99, 1, 2));
  step.clear();
  EXPECT_TRUE(step.empty());
}

TEST(Spans, TellsHowManyPositionsAreShared) {
  const auto a = run(0, 20);
  auto b = a;
  b[13] = -1;
  for (const std::size_t n : {0u, 1u, 13u}) EXPECT_EQ(n_shared(a, SpanView(b).first(n)), n);
  EXPECT_EQ(n_shared(SpanView(a), b), 13u);
  EXPECT_EQ(n_shared(SpanView(b), a), 13u);
  EXPECT_EQ(n_shared(a, SpanView(a).first(17)), 17u);
  EXPECT_TRUE(SpanView(a).first(13) == SpanView(b).first(13));
  EXPECT_FALSE(SpanView(a).first(14) == SpanView(b).first(14));
  EXPECT_FALSE(SpanView(a).first(13) == SpanView(a).first(12));
}

// SipHash of the parent and the ids, as little-endian words of 32 bits.
TEST(Spans, HashesAPageBehindItsParent) {
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  for (const std::size_t n : {0u, 1u, 15u, 16u}) {
    const auto ids = run(100, n);
    std::vector<std::uint32_t> words{7};
    words.insert(words.end(), ids.begin(), ids.end());
    EXPECT_EQ(SpanView(ids).page_hash(key, 7), siphash(key, std::as_bytes(std::span(words)))) << n;
    EXPECT_NE(SpanView(ids).page_hash(key, 7), SpanView(ids).page_hash(key, 8)) << n;
  }
}

TEST(Spans, APageKeepsItsPositions) {
  PageSpans page;
  EXPECT_TRUE(page.empty());
  for (const std::size_t n : {5u, 16u}) {
    page.assign(run(30, n));
    EXPECT_EQ(page.size(), n);
    EXPECT_THAT(page.view().ids(), ElementsAreArray(run(30, n)));
  }
}

}  // namespace
}  // namespace zinc_rt::mem
