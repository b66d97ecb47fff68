#include "spec/own_text.h"

#include <gtest/gtest.h>

#include <random>

#include "spec/acceptance.h"

namespace zinc_rt::spec {
namespace {

OwnText text_of(std::vector<std::int32_t> tokens, std::uint32_t n_limit = 4096) {
  OwnText text(n_limit);
  text.append(tokens);
  return text;
}
std::vector<std::int32_t> tokens_of(const Draft& draft) {
  return {draft.tokens.begin(), draft.tokens.end()};
}

TEST(OwnText, SaysWhatFollowedTheLastTokensBefore) {
  const auto draft = text_of({1, 2, 3, 4, 5, 9, 1, 2}).draft(8);
  EXPECT_EQ(draft.match, 2u);
  EXPECT_EQ(tokens_of(draft), (std::vector<std::int32_t>{3, 4, 5, 9}));  // two more than the match is long
}

TEST(OwnText, PrefersTheLongestMatchAndOfEqualOnesTheLast) {
  EXPECT_EQ(tokens_of(text_of({7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2}).draft(1)), (std::vector<std::int32_t>{3}));
  EXPECT_EQ(tokens_of(text_of({7, 1, 2, 3, 8, 1, 2, 4, 6, 1, 2}).draft(1)), (std::vector<std::int32_t>{4}));
}

TEST(OwnText, HasNothingToSayOfNewTextAndOfShortTexts) {
  EXPECT_TRUE(text_of({}).draft(8).tokens.empty());
  EXPECT_TRUE(text_of({5}).draft(8).tokens.empty());
  EXPECT_TRUE(text_of({5, 5}).draft(8).tokens.empty());
  EXPECT_TRUE(text_of({1, 2, 3, 4, 5, 6}).draft(8).tokens.empty());
  EXPECT_TRUE(text_of({1, 2, 3, 9, 2}).draft(8).tokens.empty());  // one token that was there is no match
}

TEST(OwnText, ADraftMayRunIntoTheTextItFollows) {
  // A text that repeats one token: the match overlaps itself, and the draft ends where the text does.
  const auto draft = text_of({3, 3, 3, 3}).draft(8);
  EXPECT_EQ(draft.match, 3u);
  EXPECT_EQ(tokens_of(draft), (std::vector<std::int32_t>{3}));
}

TEST(OwnText, KeepsWithinItsBounds) {
  std::vector<std::int32_t> tokens;
  for (int round = 0; round < 2; ++round)
    for (std::int32_t t = 0; t < 500; ++t) tokens.push_back(t);
  const auto text = text_of(tokens);
  EXPECT_TRUE(text.draft(0).tokens.empty());
  tokens.resize(600);
  EXPECT_EQ(text_of(tokens).draft(1000).tokens.size(), OwnText::kMost);
  EXPECT_EQ(text_of(tokens).draft(5).tokens.size(), 5u);
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
      const auto draft = text.draft(4);
      ASSERT_EQ(draft.match, best);
      const auto n = best == 0 ? 0 : std::min<std::size_t>(4, all.size() - best_end);
      ASSERT_EQ(tokens_of(draft), std::vector<std::int32_t>(all.begin() + static_cast<std::ptrdiff_t>(best_end),
                                                            all.begin() + static_cast<std::ptrdiff_t>(best_end + n)));
    }
  }
}

}  // namespace
}  // namespace zinc_rt::spec
