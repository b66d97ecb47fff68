// Numbers of JSON that keep their text, and objects that name a key twice.
#include "base/json_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

#include "base/strict_json.h"

namespace zinc_rt {
namespace {

TEST(JsonNumber, TheTextComesBackWhateverTheFormAndSize) {
  for (const char* text : {"0",
                           "-0",
                           "7",
                           "-7",
                           "9223372036854775807",
                           "-9223372036854775808",
                           "9223372036854775808",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775809",
                           "123456789012345678901234567890",
                           "1.0",
                           "-0.0",
                           "0.10",
                           "0.1000",
                           "1e5",
                           "1E5",
                           "1e+05",
                           "1E400",
                           "-1e-400",
                           "0.1234567890123456789",
                           "1e-7",
                           "100.00",
                           "[0.10,{\"a\":1e5,\"b\":[-0,18446744073709551616]}]",
                           "{\"z\":1,\"a\":{},\"b\":[]}"}) {
    const auto value = read_strict_json(text, 8);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(dump_json(*value), text);
    EXPECT_EQ(dump_json(*read_any_json(text)), text);
  }
}

TEST(JsonNumber, OrdinaryNumbersStayThose) {
  EXPECT_TRUE(read_strict_json("18446744073709551615", 1)->is_number_unsigned());
  EXPECT_TRUE(read_strict_json("-5", 1)->is_number_integer());
  EXPECT_TRUE(read_strict_json("0.5", 1)->is_number_float());
  EXPECT_TRUE(is_kept_number(*read_strict_json("0.50", 1)));
}

TEST(JsonNumber, BeyondDoublesOnlyTheSizeCounts) {
  using Text = std::string_view;
  EXPECT_EQ(number_value(Text("1e5000")), INFINITY);
  EXPECT_EQ(number_value(Text("-1e5000")), -INFINITY);
  EXPECT_EQ(number_value(Text("1e99999999999999999999")), INFINITY);
  EXPECT_EQ(number_value(Text("1e-99999999999999999999")), 0);
  const std::string nines(400, '9'), zeros(400, '0');
  EXPECT_EQ(number_value(Text(nines + ".5e+1")), INFINITY);
  EXPECT_EQ(number_value(Text("0." + zeros + "1")), 0);
  EXPECT_EQ(number_value(Text("0." + zeros + "1e801")), INFINITY);
  EXPECT_EQ(number_value(Text("0." + zeros + "1e401")), 1);
}

TEST(JsonNumber, IsWorthWhatItsTextSays) {
  const auto worth = [](const char* text) { return number_value(*read_strict_json(text, 1)); };
  EXPECT_EQ(worth("0.10"), 0.1);
  EXPECT_EQ(worth("1e5"), 1e5);
  EXPECT_EQ(worth("18446744073709551616"), 0x1p64);
  EXPECT_EQ(worth("1E400"), INFINITY);
  EXPECT_EQ(worth("-1E400"), -INFINITY);
  EXPECT_EQ(worth("1e-400"), 0);
  EXPECT_TRUE(std::signbit(worth("-1e-400")));
  EXPECT_EQ(worth("1e-99999999"), 0);
  EXPECT_TRUE(is_written_whole("-0"));
  EXPECT_FALSE(is_written_whole("1.0"));
  EXPECT_FALSE(is_written_whole("1E5"));
}

TEST(JsonNumber, LayoutsAreThatOfPythonAndOneWithoutBlanks) {
  const auto value = *read_strict_json("{\"a\":[1,2.50,{}],\"\xC3\xA9\":\"\xC3\xA9\"}", 4);
  EXPECT_EQ(dump_json(value, kPythonLayout), "{\"a\": [1, 2.50, {}], \"\xC3\xA9\": \"\xC3\xA9\"}");
  EXPECT_EQ(dump_json(value, {.ensure_ascii = true}), R"({"a":[1,2.50,{}],"\u00e9":"\u00e9"})");
}

TEST(JsonNumber, OfAKeyGivenTwiceTheLastValueCountsInTheFirstPlace) {
  const char* twice = R"({"a":{"x":1},"b":2,"a":[3],"c":4})";
  EXPECT_FALSE(read_strict_json(twice, 4));
  EXPECT_EQ(dump_json(*read_any_json(twice)), R"({"a":[3],"b":2,"c":4})");
  EXPECT_EQ(dump_json(*read_any_json(R"({"a":1,"a":{"b":1,"b":{"c":2}}})")), R"({"a":{"b":{"c":2}}})");
  EXPECT_FALSE(read_any_json("{\"a\":1"));
  EXPECT_FALSE(read_any_json("01"));
}

TEST(JsonNumber, ANulEndsNoText) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(read_any_json("8\0 and more"sv));
  const auto fault = read_strict_json("{}\0"sv, 4);
  ASSERT_FALSE(fault);
  EXPECT_EQ(fault.error().what, "a NUL byte");
  EXPECT_EQ(fault.error().byte, 2u);
}

}  // namespace
}  // namespace zinc_rt
