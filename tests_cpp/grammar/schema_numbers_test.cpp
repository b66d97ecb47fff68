// Numbers of schemas are exact, whatever their size and form.
#include <fmt/format.h>

#include "tests_cpp/grammar/grammar_fixture.h"

namespace zinc_rt::grammar {
namespace {

struct NumberCase {
  const char* schema;
  std::vector<std::string> good, bad;
};

TEST(SchemaNumbers, BoundsAndValuesAreExact) {
  const std::string big = "123456789012345678901234567890";
  for (const NumberCase& one : std::vector<NumberCase>{
           {R"({"type":"integer","minimum":9223372036854775808,"maximum":18446744073709551616})",
            {"9223372036854775808", "18446744073709551615", "18446744073709551616"},
            {"9223372036854775807", "18446744073709551617", "0"}},
           {R"({"type":"integer","exclusiveMaximum":9007199254740993})",
            {"9007199254740992"},
            {"9007199254740993", "9007199254740994"}},
           {R"({"enum":[18446744073709551616, 123456789012345678901234567890]})",
            {"18446744073709551616", "123456789012345678901234567890"},
            {"18446744073709551615", "18446744073709552000", "123456789012345678901234567891"}},
           {R"({"const":0.1234567890123456789})", {"0.1234567890123456789"}, {"0.12345678901234568", "0.1234567890"}},
           {R"({"minimum":0.1234567890123456789,"type":"number"})",
            {"0.1234567890123456789", "0.1234567890123456790", "1"},
            {"0.1234567890123456788", "0.12345678901234567"}},
           {R"({"enum":[1.0, 2.50, 1e3, -0, 0.1000]})", {"1", "2.5", "1000", "0", "0.1"}, {"1.0", "1e3", "-0"}},
           {R"({"const":1E400})", {"1E400"}, {"1", "1e309"}},
           {R"({"enum":[1, 2, 3],"const":2.0})", {"2"}, {"1", "3", "2.0"}},
           {R"({"type":"integer","const":1e3})", {"1000"}, {"1e3"}},
           {R"({"allOf":[{"enum":[{"a":1.0}]},{"enum":[{"a":1.00},{"a":2}]}]})", {R"({"a":1})"}, {R"({"a":2})"}},
           {R"({"type":"integer","minimum":0,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false})",
            {"1", "5"},
            {"0", "6"}},
           {R"({"minLength":2.0,"maxLength":3e0,"type":"string"})", {R"("ab")", R"("abc")"}, {R"("a")", R"("abcd")"}},
       }) {
    const auto made = must(compile({SourceKind::kJsonSchema, one.schema, {}}));
    for (const auto& text : one.good) EXPECT_TRUE(accepts(made, text)) << one.schema << " " << text;
    for (const auto& text : one.bad) EXPECT_FALSE(accepts(made, text)) << one.schema << " " << text;
  }
}

TEST(SchemaNumbers, UpperBoundsOfCountsMayBeLarge) {
  const auto text = must(compile({SourceKind::kJsonSchema, R"({"type":"string","maxLength":20000})", {}}));
  EXPECT_TRUE(accepts(text, '"' + std::string(20000, 'a') + '"'));
  EXPECT_FALSE(accepts(text, '"' + std::string(20001, 'a') + '"'));
  std::string many = "[1";
  for (int i = 1; i < 20000; ++i) many += ",1";
  const auto list = must(compile({SourceKind::kJsonSchema, R"({"type":"array","maxItems":20000})", {}}));
  EXPECT_TRUE(accepts(list, many + "]"));
  EXPECT_FALSE(accepts(list, many + ",1]"));
  for (const char* schema : {R"({"type":"string","maxLength":65535})", R"({"maxLength":9007199254740991})",
                             R"({"type":"string","maxLength":1e300})"}) {
    const auto made = must(compile({SourceKind::kJsonSchema, schema, {}}));
    EXPECT_TRUE(accepts(made, '"' + std::string(9000, 'a') + '"')) << schema;
  }
}

// `step` = k / 10^e against whole numbers of units of 10^-4.
TEST(SchemaNumbers, MultiplesAgreeWithArithmetic) {
  struct Step {
    const char* text;
    int units;  // of 1/10000
  };
  for (const Step& step : {Step{"0.25", 2500},
                           {"0.5", 5000},
                           {"2.5", 25000},
                           {"0.3", 3000},
                           {"0.0125", 125},
                           {"0.01", 100},
                           {"7", 70000},
                           {"30", 300000},
                           {"1e2", 1000000},
                           {"0.50", 5000}}) {
    const auto made =
        must(compile({SourceKind::kJsonSchema, fmt::format(R"({{"type":"number","multipleOf":{}}})", step.text), {}}));
    for (int units = -21000; units <= 1210000; units += units > 40000 ? 1250 : 25) {
      const int magnitude = units < 0 ? -units : units;
      auto text = fmt::format("{}{}.{:04d}", units < 0 ? "-" : "", magnitude / 10000, magnitude % 10000);
      while (text.back() == '0') text.pop_back();
      if (text.back() == '.') text.pop_back();
      EXPECT_EQ(accepts(made, text), units % step.units == 0) << text << " of " << step.text;
    }
  }
  const auto quarter = must(compile({SourceKind::kJsonSchema, R"({"type":"number","multipleOf":0.25})", {}}));
  for (const char* good : {"1.50", "1.500", "0.0", "12.750000"}) EXPECT_TRUE(accepts(quarter, good)) << good;
  for (const char* bad : {"1.", ".5", "1.501", "1.2500001"}) EXPECT_FALSE(accepts(quarter, bad)) << bad;
  const auto huge = must(compile({SourceKind::kJsonSchema, R"({"type":"integer","multipleOf":1e30})", {}}));
  EXPECT_TRUE(accepts(huge, "5000000000000000000000000000000"));
  EXPECT_FALSE(accepts(huge, "5000000000000000000000000000001"));
}

TEST(SchemaNumbers, WhatIsNotEnforcedIsNamed) {
  for (const auto& [schema, pointer] :
       {std::pair(R"({"multipleOf":0.1234567891})", "/multipleOf: 0.1234567891 is not enforced"),
        {R"({"properties":{"a":{"multipleOf":12345678.5}}})", "/properties/a/multipleOf: 12345678.5"},
        {R"({"multipleOf":0})", "/multipleOf: a number above 0"},
        {R"({"multipleOf":-2})", "/multipleOf: a number above 0"},
        {R"({"minimum":1e2000})", "/minimum: a number of at most 1000 digits"},
        {R"({"minimum":1e-99999999})", "/minimum: a number of at most 1000 digits"},
        {R"({"minLength":1e-5000})", "/minLength: a whole number"},
        {R"({"maximum":"5"})", "/maximum: a number is wanted"}}) {
    const auto made = compile({SourceKind::kJsonSchema, schema, {}});
    ASSERT_FALSE(made) << schema;
    EXPECT_NE(made.error().message.find(pointer), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace zinc_rt::grammar
