#include "spec/own_text.h"

#include <gtest/gtest.h>

#include <random>

#include "spec/acceptance.h"

namespace zinc_rt::spec {
namespace {

struct Found {
  std::vector<std::int32_t> tokens;
  std::uint32_t match = 0;
};
Found found_in(const OwnText& text, std::uint32_t most) {
  const Draft draft = text.draft(most);
  return {{draft.tokens.begin(), draft.tokens.end()}, draft.match};
}
Found draft_of(std::vector<std::int32_t> tokens, std::uint32_t most) {
  OwnText text(4096);
  text.append(tokens);
  return found_in(text, most);
}

TEST(OwnText, SaysWhatFollowedTheLastTokensBefore) {
  const auto draft = draft_of({1, 2, 3, 4, 5, 9, 1, 2}, 8);
  EXPECT_EQ(draft.match, 2u);
  EXPECT_EQ(draft.tokens, (std::vector<std::int32_t>{3, 4, 5, 9}));  // two more than the match is long
}

TEST(OwnText, PrefersTheLongestMatchAndOfEqualOnesTheLast) {
  EXPECT_EQ(draft_of({7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2}, 1).tokens, (std::vector<std::int32_t>{3}));
  EXPECT_EQ(draft_of({7, 1, 2, 3, 8, 1, 2, 4, 6, 1, 2}, 1).tokens, (std::vector<std::int32_t>{4}));
}

TEST(OwnText, HasNothingToSayOfNewTextAndOfShortTexts) {
  EXPECT_TRUE(draft_of({}, 8).tokens.empty());
  EXPECT_TRUE(draft_of({5}, 8).tokens.empty());
  EXPECT_TRUE(draft_of({5, 5}, 8).tokens.empty());
  EXPECT_TRUE(draft_of({1, 2, 3, 4, 5, 6}, 8).tokens.empty());
  EXPECT_TRUE(draft_of({1, 2, 3, 9, 2}, 8).tokens.empty());  // one token that was there is no match
}

// A text that repeats itself up to its end is drafted to repeat itself further.
TEST(OwnText, ADraftMayRunBeyondTheTextItFollows) {
  const auto same = draft_of({3, 3, 3, 3}, 8);
  EXPECT_EQ(same.match, 3u);
  EXPECT_EQ(same.tokens, (std::vector<std::int32_t>{3, 3, 3, 3, 3}));
  EXPECT_EQ(draft_of({1, 2, 3, 1, 2, 3, 1, 2}, 8).tokens, (std::vector<std::int32_t>{3, 1, 2, 3, 1, 2, 3}));
}

TEST(OwnText, KeepsWithinItsBounds) {
  std::vector<std::int32_t> tokens;
  for (int round = 0; round < 2; ++round)
    for (std::int32_t t = 0; t < 500; ++t) tokens.push_back(t);
  EXPECT_TRUE(draft_of(tokens, 0).tokens.empty());
  tokens.resize(600);
  EXPECT_EQ(draft_of(tokens, 1000).tokens.size(), OwnText::kMost);
  EXPECT_EQ(draft_of(tokens, 5).tokens.size(), 5u);
}

// Against a search of all places, on texts of few tokens, appended in parts.
TEST(OwnText, FindsWhatASearchOfAllPlacesFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int32_t> all;
    OwnText text(300);
    while (all.size() < 60) {  // no pair has more than kLooks places
      std::vector<std::int32_t> part(random() % 5);
      for (auto& t : part) t = static_cast<std::int32_t>(random() % 6);
      text.append(part);
      all.insert(all.end(), part.begin(), part.end());
      std::size_t best = 0, best_end = 0;
      for (std::size_t end = 2; end < all.size(); ++end) {
        std::size_t n = 0;
        while (n < end && all[end - 1 - n] == all[all.size() - 1 - n]) ++n;
        if (n >= 2 && n >= best) best = n, best_end = end;
      }
      const auto draft = found_in(text, 4);
      ASSERT_EQ(draft.match, best);
      std::vector<std::int32_t> wanted;
      for (std::size_t i = 0; best > 0 && i < std::min<std::size_t>(4, best + OwnText::kBeyond); ++i)
        wanted.push_back(all[best_end + i % (all.size() - best_end)]);
      ASSERT_EQ(draft.tokens, wanted);
    }
  }
}

}  // namespace
}  // namespace zinc_rt::spec
