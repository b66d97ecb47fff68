#include "server/http/byte_budget.h"

#include <gtest/gtest.h>

namespace zinc_rt::server {
namespace {

using Full = ByteBudget::Full;

TEST(ByteBudget, EachBoundIsKeptAndNamed) {
  const auto budget = std::make_shared<ByteBudget>(ByteBudget::Limits{100, 60, 40});
  ByteBudget::Hold a(budget, "1.1.1.1", "alice"), b(budget, "1.1.1.1", "bob"), c(budget, "2.2.2.2", "carol");
  EXPECT_EQ(a.resize(40), Full::kNo);
  EXPECT_EQ(a.resize(41), Full::kOwner);
  EXPECT_EQ(b.resize(20), Full::kNo);
  EXPECT_EQ(b.resize(21), Full::kAddress);
  EXPECT_EQ(c.resize(40), Full::kNo);
  EXPECT_EQ(budget->held(), 100u);
  ByteBudget::Hold d(budget, "3.3.3.3", "");
  EXPECT_EQ(d.resize(1), Full::kInAll);
  EXPECT_EQ(a.size(), 40u);  // what was refused changed nothing
}

TEST(ByteBudget, WhatIsGivenBackIsThereForOthers) {
  const auto budget = std::make_shared<ByteBudget>(ByteBudget::Limits{10, 10, 10});
  {
    ByteBudget::Hold a(budget, "x", "alice");
    EXPECT_EQ(a.resize(10), Full::kNo);
    ByteBudget::Hold moved = std::move(a);
    EXPECT_EQ(budget->held(), 10u);
    EXPECT_EQ(moved.resize(4), Full::kNo);
    ByteBudget::Hold b(budget, "y", "bob");
    EXPECT_EQ(b.resize(6), Full::kNo);
    b = ByteBudget::Hold(budget, "z", "bob");
    EXPECT_EQ(budget->held(), 4u);
  }
  EXPECT_EQ(budget->held(), 0u);
}

TEST(ByteBudget, LessIsNeverRefused) {
  const auto budget = std::make_shared<ByteBudget>(ByteBudget::Limits{10, 10, 0});
  ByteBudget::Hold a(budget, "x", "");
  EXPECT_EQ(a.resize(10), Full::kNo);
  EXPECT_EQ(a.resize(9), Full::kNo);
  EXPECT_EQ(a.resize(0), Full::kNo);
}

}  // namespace
}  // namespace zinc_rt::server
