// What is guessed, and how the chance that it is right is learned.
#include "spec/drafter.h"

#include <gtest/gtest.h>

namespace zinc_rt::spec {
namespace {

using Ids = std::vector<std::int32_t>;

Ids ids(const Guess& guess) {
  return {guess.tokens.begin(), guess.tokens.end()};
}

TEST(Acceptance, LearnsByTheLengthOfTheMatchAndForgets) {
  Acceptance a(0.97);
  EXPECT_DOUBLE_EQ(a.chance(Source::kOwnText, 2, 0.5), 0.5);
  for (int i = 0; i < 200; ++i) a.observe(Source::kOwnText, 2, 3, 3);
  EXPECT_GT(a.chance(Source::kOwnText, 3, 0.5), 0.9);
  EXPECT_DOUBLE_EQ(a.chance(Source::kOwnText, 4, 0.5), 0.5);     // another class
  EXPECT_DOUBLE_EQ(a.chance(Source::kExpected, 2, 0.25), 0.25);  // another source
  for (int i = 0; i < 200; ++i) a.observe(Source::kOwnText, 2, 1, 0);
  EXPECT_LT(a.chance(Source::kOwnText, 2, 0.5), 0.1);
}

TEST(Experience, LongMatchesAreTrustedMoreAndATenantsRequestsTeachTogether) {
  Experience tenant;
  EXPECT_LT(tenant.chance(Source::kOwnText, 2), tenant.chance(Source::kOwnText, 8));
  EXPECT_LT(tenant.chance(Source::kOwnText, 8), tenant.chance(Source::kOwnText, 32));
  const Ids prompt = {1, 2, 3, 1, 2};
  Drafter one(5, 100, 8);
  one.append_prompt(prompt);
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(one.guess(tenant).tokens.empty());
    one.observe(2, 0, tenant);  // the guess was wrong
  }
  Drafter other(5, 100, 8);
  other.append_prompt(prompt);
  EXPECT_LT(other.guess(tenant).chance, 0.2);
  EXPECT_GT(other.guess(Experience()).chance, 0.4);
}

TEST(Drafter, FollowsTheExpectedText) {
  const Experience tenant;
  const Ids expected = {10, 11, 12, 13, 14, 15, 16};
  Drafter drafter(2, 100, 3, expected);
  drafter.append_prompt(Ids{1, 2});
  EXPECT_EQ(ids(drafter.guess(tenant)), (Ids{10, 11, 12}));
  drafter.append(10);
  drafter.append(11);
  EXPECT_EQ(ids(drafter.guess(tenant)), (Ids{12, 13, 14}));
  drafter.append(99);  // instead of 12
  EXPECT_EQ(ids(drafter.guess(tenant)), (Ids{13, 14, 15}));
  drafter.append(13);
  drafter.append(14);
  drafter.append(15);
  EXPECT_EQ(ids(drafter.guess(tenant)), (Ids{16}));
  drafter.append(16);
  EXPECT_TRUE(drafter.guess(tenant).tokens.empty());  // nothing is left, and the text's last tokens are new
}

TEST(Drafter, FindsItsPlaceInTheExpectedTextAgain) {
  const Experience tenant;
  const Ids expected = {10, 11, 12, 13, 14, 15, 16, 17, 18};
  Drafter drafter(2, 100, 2, expected);
  drafter.append_prompt(Ids{1, 2});
  for (const std::int32_t id : {10, 11, 50, 51, 52}) drafter.append(id);  // three tokens more than expected
  for (const std::int32_t id : {12, 13, 14}) drafter.append(id);
  EXPECT_EQ(ids(drafter.guess(tenant)), (Ids{15, 16}));
  drafter.append(60);  // in its place there again
  EXPECT_EQ(ids(drafter.guess(tenant)), (Ids{16, 17}));
}

TEST(Drafter, WhatAGrammarForces) {
  Experience tenant;
  Drafter drafter(1, 100, 8);
  drafter.append_prompt(Ids{1});
  EXPECT_TRUE(drafter.forced({}, tenant).tokens.empty());
  const Ids forced = {5, 6};
  EXPECT_EQ(ids(drafter.forced(forced, tenant)), forced);
  EXPECT_GT(drafter.forced(forced, tenant).chance, 0.8);
  for (int i = 0; i < 50; ++i) drafter.observe(2, 0, tenant);
  EXPECT_LT(drafter.forced(forced, tenant).chance, 0.3);
}

}  // namespace
}  // namespace zinc_rt::spec
