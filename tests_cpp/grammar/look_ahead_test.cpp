// Looks ahead in patterns, against what ECMA-262 says of them.
#include "tests_cpp/grammar/grammar_fixture.h"

namespace zinc_rt::grammar {
namespace {

struct LookCase {
  const char* pattern;
  std::vector<std::string> good, bad;  // texts of JSON strings
};

TEST(LookAhead, IsAConjunctionWithWhatFollows) {
  for (
      const LookCase& one : std::vector<LookCase>{
          {"^(?!a)[ab]+$", {"b", "ba"}, {"", "a", "ab"}},
          {"^(?=.*[0-9])[a-z0-9]+$", {"1", "a1b"}, {"", "ab"}},
          {"^(?=.{3})(?!.*--)[a-z-]+$", {"a-b", "abc-d"}, {"ab", "a--b"}},
          {"x(?=y)", {"xy", "axyb", "xxy"}, {"x", "yx", "ax y"}},
          {"x(?!y)", {"x", "xz", "xyx"}, {"xy", "y", "xyxy"}},
          {"(?:a|(?=b).)c", {"ac", "bc", "zzbc"}, {"cc", "c", "b"}},
          {"^(?:(?!ab)[a-c]){2,3}$", {"ba", "cc", "bba"}, {"abc", "cab", "a"}},
          {"^(?!(?:a|b)$)[a-z]+$", {"c", "ab", "aa"}, {"a", "b", ""}},
          {"^a(?=b$)", {"ab"}, {"abc", "a"}},
          // pydantic's of decimals
          {R"(^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$)", {"1", "-0.5", "007", ".5", "5."}, {"", "-", ".", "+.", "1e5", "a"}},
          {R"(^(?!^[-+.]*$)[+-]?0*(?:\\d{0,3}$|(?=[\\d.]{1,6}0*$)\\d{0,3}\\.\\d{0,2}0*$))",
           {"123", "1.25", "123.45", "-1.50000"},
           {"1234", "1.255", "1234.5", "", "."}},
          // zod's of addresses
          {R"(^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$)",
           {"a@b.cd", "a.b+c@d-e.f.gh"},
           {".a@b.cd", "a..b@c.de", "a@b", "a@.bc"}},
      }) {
    const auto made = must(
        compile({SourceKind::kJsonSchema, std::string(R"({"type":"string","pattern":")") + one.pattern + "\"}", {}}));
    for (const auto& text : one.good) EXPECT_TRUE(accepts(made, '"' + text + '"')) << one.pattern << " " << text;
    for (const auto& text : one.bad) EXPECT_FALSE(accepts(made, '"' + text + '"')) << one.pattern << " " << text;
  }
}

TEST(LookAhead, OfAWholeTextEndsWithIt) {
  const auto made = must(compile({SourceKind::kRegex, "(?!no)[a-z]{2,4}(?=!)!", {}}));
  for (const char* good : {"yes!", "on!"}) EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"no!", "nope!", "yes"}) EXPECT_FALSE(accepts(made, bad)) << bad;
}

TEST(LookAhead, WhatIsNotReadIsNamed) {
  for (const auto& [pattern, words] : {std::pair("(?:(?=a).)*", "repeated more than 16 times"),
                                       {"(?<=a)b", "a look behind"},
                                       {"(?<!a)b", "a look behind"},
                                       {"(?=a)*", "a quantifier behind a look ahead"},
                                       {"a?^(?=b)b", "^ behind what may be empty"}}) {
    const auto made = compile({SourceKind::kRegex, pattern, {}});
    ASSERT_FALSE(made) << pattern;
    EXPECT_NE(made.error().message.find(words), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace zinc_rt::grammar
