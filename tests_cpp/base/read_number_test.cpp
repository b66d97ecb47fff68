// Numbers written as text: what is one as a whole, and what is not.
#include "base/read_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace zinc_rt {
namespace {

TEST(ReadNumber, TakesAWholeTextAndLeavesTheValueOtherwise) {
  std::uint16_t port = 7;
  for (const char* no : {"", " 1", "1 ", "+1", "-1", "65536", "1x", "0x1", "1.0", "x"}) {
    EXPECT_FALSE(read_number(no, port)) << no;
    EXPECT_EQ(port, 7) << no;
  }
  EXPECT_TRUE(read_number("65535", port));
  EXPECT_EQ(port, 65535);
  EXPECT_TRUE(read_number("007", port));
  EXPECT_EQ(port, 7);

  std::int64_t whole = 0;
  EXPECT_TRUE(read_number("-9223372036854775808", whole));
  EXPECT_EQ(whole, INT64_MIN);
  EXPECT_FALSE(read_number("9223372036854775808", whole));
  EXPECT_EQ(whole, INT64_MIN);

  double real = 0;
  EXPECT_TRUE(read_number("1e-3", real));
  EXPECT_EQ(real, 1e-3);
  EXPECT_FALSE(read_number("1e-3 s", real));
  EXPECT_EQ(real, 1e-3);
}

}  // namespace
}  // namespace zinc_rt
