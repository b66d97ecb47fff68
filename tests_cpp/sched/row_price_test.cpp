// The price of a step by its number of rows.
#include "sched/row_price.h"

#include <gtest/gtest.h>

namespace zinc_rt::sched {
namespace {

TEST(RowPrice, AStairIsAStairWhereItWasSeenAndALineBetween) {
  RowPrice price;
  EXPECT_FALSE(price.is_known());
  for (int i = 0; i < 8; ++i) {
    price.observe(1, 2000);
    price.observe(2, 2800);
    price.observe(8, 2800);
    price.observe(64, 4800);
  }
  EXPECT_TRUE(price.is_known());
  EXPECT_NEAR(price.us(1), 2000, 1);
  EXPECT_NEAR(price.us(2), 2800, 1);
  EXPECT_NEAR(price.us(5), 2800, 1);
  EXPECT_NEAR(price.us(36), 3800, 1);
  EXPECT_NEAR(price.us(72), 5400, 1);  // an eighth more: 8 rows of a 64th each
  EXPECT_EQ(price.most_seen(), 64u);
}

TEST(RowPrice, WithinAClassMoreRowsCostMore) {
  RowPrice price;
  for (int i = 0; i < 8; ++i) price.observe(16, 1600), price.observe(17, 1700), price.observe(19, 1900);
  EXPECT_LT(price.us(17), price.us(18));
  EXPECT_LT(price.us(18), price.us(19));
}

// The first step with so many rows may build a graph.
TEST(RowPrice, AFirstStepThatPreparesDoesNotCount) {
  RowPrice price;
  for (int i = 0; i < 8; ++i) price.observe(1, 2000);
  price.observe(8, 40'000);
  EXPECT_LT(price.us(8), 3000);  // not known yet
  price.observe(8, 2800);
  EXPECT_NEAR(price.us(8), 2800, 1);
  price.observe(8, 3600);
  EXPECT_NEAR(price.us(8), 2900, 1);  // an eighth of the way
  price.observe(8, 90'000);
  EXPECT_NEAR(price.us(8), 2900 + 2900 / 8, 1);  // a long one counts twice the price
  price.observe(8, 2700);
  EXPECT_NEAR(price.us(8), 2700, 1);
}

}  // namespace
}  // namespace zinc_rt::sched
