// How many tokens a draft model should guess: as many as pay for its steps and for the rows that verify them.
#include "engine/draft_depth.h"

#include <gtest/gtest.h>

namespace zinc_rt {
namespace {

// A price of base + per_row x rows, known for so many rows.
sched::RowPrice price_of(double base, double per_row, std::uint32_t most = 256) {
  sched::RowPrice price;
  for (std::uint32_t rows = 1; rows <= most; ++rows) price.observe(rows, base + per_row * rows);
  return price;
}

class DraftDepthTest : public ::testing::Test {
 protected:
  DraftDepthTest() { depth_.reserve(64); }
  // The depths of n requests with the same options.
  std::uint32_t depth_of(GuessOption option, std::uint32_t n, const sched::RowPrice& draft,
                         std::uint32_t n_most = 4096) {
    std::vector<GuessOption> options(n, option);
    choice_ = depth_.choose(options, n, n_most, {model_, draft});
    std::uint32_t sum = 0;
    for (const GuessOption& o : options) sum += o.depth;
    return sum;
  }
  GuessOption of_model(double chance, std::uint32_t most = kMostGuesses) const {
    return {.n_model = most, .model_chance = chance};
  }

  DraftDepth depth_;
  DraftDepth::Choice choice_;
  const sched::RowPrice model_ = price_of(10'000, 100), cheap_ = price_of(500, 10), dear_ = price_of(9'000, 100);
};

TEST_F(DraftDepthTest, ACheapModelThatIsMostlyRightGuessesSeveralTokens) {
  const std::uint32_t sure = depth_of(of_model(0.9), 1, cheap_), unsure = depth_of(of_model(0.6), 1, cheap_);
  EXPECT_TRUE(choice_.pays());
  EXPECT_GT(unsure, 1u);
  EXPECT_GT(sure, unsure + 2);
  EXPECT_LT(sure, kMostGuesses);
}

TEST_F(DraftDepthTest, AModelThatCostsAsMuchAsItSavesDoesNotPay) {
  depth_of(of_model(0.9), 1, dear_);
  EXPECT_FALSE(choice_.pays());
  EXPECT_LE(choice_.us_with, choice_.us_without);  // since it may guess nothing
}

TEST_F(DraftDepthTest, AModelThatIsMostlyWrongDoesNotPay) {
  depth_of(of_model(0.03), 1, cheap_);
  EXPECT_FALSE(choice_.pays());
}

TEST_F(DraftDepthTest, ManyStreamsTakeFewerGuessesEach) {
  // A row costs a fifth of a step's base, so that 64 streams fill the device.
  const auto model = price_of(10'000, 2'000, 1024);
  std::vector<GuessOption> one(1, of_model(0.8)), many(64, of_model(0.8));
  EXPECT_TRUE(depth_.choose(one, 1, 4096, {model, cheap_}).pays());
  EXPECT_GT(one[0].depth, 0u);
  EXPECT_FALSE(depth_.choose(many, 64, 4096, {model, cheap_}).pays());
}

TEST_F(DraftDepthTest, AGuessThatCostsNothingIsTakenInsteadWhereItIsAsLikely) {
  GuessOption option = of_model(0.8);
  option.n_own = 8;
  option.own_chance = 0.8;
  EXPECT_EQ(depth_of(option, 2, cheap_), 0u);
  EXPECT_FALSE(choice_.pays());
  option.own_chance = 0.3;
  EXPECT_GT(depth_of(option, 2, cheap_), 2u);
  EXPECT_TRUE(choice_.pays());
}

TEST_F(DraftDepthTest, TheLikelierRequestGetsMoreTokens) {
  std::vector<GuessOption> options = {of_model(0.5), of_model(0.9), {}};
  EXPECT_TRUE(depth_.choose(options, 3, 4096, {model_, cheap_}).pays());
  EXPECT_GT(options[1].depth, options[0].depth);
  EXPECT_EQ(options[2].depth, 0u);
}

TEST_F(DraftDepthTest, NoRequestGetsMoreThanItMayHaveAndNoStepMoreThanItHolds) {
  EXPECT_EQ(depth_of(of_model(0.99, 3), 2, cheap_), 6u);
  EXPECT_EQ(depth_of(of_model(0.99), 2, cheap_, 7), 5u);
}

TEST_F(DraftDepthTest, GuessesTakeNoLongerThanOtherStreamsMayWait) {
  const auto slow = price_of(100'000, 100), draft = price_of(20'000, 0);
  std::vector<GuessOption> options(1, of_model(0.99));
  depth_.choose(options, 1, 4096, {slow, draft});
  EXPECT_EQ(options[0].depth, 4u);  // the fifth would make the step more than twice as long
}

}  // namespace
}  // namespace zinc_rt
