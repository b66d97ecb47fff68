// Regular expressions, choices and GBNF.
#include <regex>

#include "tests_cpp/grammar/grammar_fixture.h"

namespace zinc_rt::grammar {
namespace {

Result<Grammar> regex_of(std::string pattern) {
  return compile({SourceKind::kRegex, std::move(pattern), {}});
}

TEST(Regex, AgreesWithTheStandardLibrary) {
  // std::regex knows the same grammar; on short texts of few letters it is an oracle.
  const char* patterns[] = {"a",       "ab|c",    "(a|b)*c",      "a{2}",        "a{1,3}b?",
                            "[ab]+c*", "[^a]b",   "(ab|a)(c|bc)", "(a*b*)*",     "((a|b)?c){2}",
                            "a.c",     "(?:a|)b", "a*?b",         "[a-c]{0,2}a", "(a|ab)(bc|c)*",
                            "()a",     "\\w\\d?", "[\\d-]+",      "\\.|a",       "(a{2}){2}"};
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; texts.size() < 1500; ++i)
    for (const char c : {'a', 'b', 'c', '.', '1'}) texts.push_back(texts[i] + c);
  for (const char* pattern : patterns) {
    const Grammar made = must(regex_of(pattern));
    const std::regex oracle(pattern);
    for (const std::string& text : texts)
      ASSERT_EQ(accepts(made, text), std::regex_match(text, oracle)) << pattern << " " << text;
  }
}

TEST(Regex, CharactersAreUtf8) {
  const Grammar made = must(regex_of("[à-ÿ]{2}|.\\u{1F600}|[^\\x00-\\u07ff]"));
  for (const char* good : {"éè", "x😀", "😀😀", "€", "￿", "😀"}) EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"é", "\xC3\xC3", "a", "\xED\xA0\x80", "\n😀"}) EXPECT_FALSE(accepts(made, bad)) << bad;
}

TEST(Regex, Errors) {
  const auto error = [](std::string pattern) {
    const auto made = regex_of(std::move(pattern));
    return made ? std::string("none") : made.error().message;
  };
  EXPECT_EQ(error("a("), "[regex] byte 2: a ) is wanted");
  EXPECT_EQ(error("a)"), "[regex] byte 1: a ) that closes nothing");
  EXPECT_EQ(error("[a"), "[regex] byte 2: a class that does not end");
  EXPECT_EQ(error("*"), "[regex] byte 0: a quantifier behind nothing");
  EXPECT_EQ(error("a{2,1}"), "[regex] byte 6: {m,n} with n below m");
  EXPECT_EQ(error("\\1"), "[regex] byte 2: \\1, which is not supported");
  EXPECT_EQ(error("a\\bc"), "[regex] byte 3: \\b, which is not supported");
  EXPECT_EQ(error("(?i)a"),
            "[regex] byte 2: a group of a kind that is not supported (flags, conditions, atomic groups)");
  EXPECT_EQ(error("x$y"), "[regex] $ in the middle, which is not supported");
  EXPECT_EQ(error("a{10001}"), "[grammar_too_complex] repeats of a pattern: 10001 wanted, at most 10000 allowed");
  EXPECT_EQ(error(std::string(4097, 'a')),
            "[grammar_too_complex] bytes of a pattern: 4097 wanted, at most 4096 allowed");
  EXPECT_TRUE(error(std::string(70, '(') + std::string(70, ')')).starts_with("[grammar_too_complex]"));
  EXPECT_EQ(error("[]"), "[grammar] no text at all fits");
  EXPECT_EQ(error("\xff"), "[regex] byte 0: bytes that are not UTF-8");
}

TEST(Choice, OneOfTheTexts) {
  const Grammar made = must(compile({SourceKind::kChoice, "", {"yes", "yes!", "no", "", "no"}}));
  for (const char* good : {"yes", "yes!", "no", ""}) EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"y", "no!", "yesno"}) EXPECT_FALSE(accepts(made, bad)) << bad;
  EXPECT_EQ(compile({SourceKind::kChoice, "", {}}).error().message, "[grammar] no text at all fits");
}

TEST(Gbnf, Grammars) {
  const Grammar json = must(compile({SourceKind::kGbnf,
                                     R"gbnf(
# a value
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)gbnf",
                                     {}}));
  for (const char* good : {"{}", "{\"a\": [1, 2.5e3, {\"b\":null}]}", "{ \"\\u00e9\" :\n  true}"})
    EXPECT_TRUE(accepts(json, good)) << good;
  for (const char* bad : {"[]", "{\"a\"}", "{\"a\": 01}", "{\"a\":  1}", "{\"a\": tru}"})
    EXPECT_FALSE(accepts(json, bad)) << bad;
  // No greedy lexeme takes what the next one needs.
  const Grammar overlap =
      must(compile({SourceKind::kGbnf, "root ::= item+ \"ab\"\nitem ::= \"a\" | \"b\" | \"(\" item* \")\"", {}}));
  for (const char* good : {"aab", "abab", "(a)ab", "bbab", "()(())ab"}) EXPECT_TRUE(accepts(overlap, good)) << good;
  for (const char* bad : {"ab", "aba", "(ab", ")ab"}) EXPECT_FALSE(accepts(overlap, bad)) << bad;
  const Grammar left = must(compile({SourceKind::kGbnf, "root ::= root \"+\" [0-9]+ | [0-9]+", {}}));
  EXPECT_TRUE(accepts(left, "1+22+3"));
  EXPECT_FALSE(accepts(left, "1+"));
  const Grammar empty = must(compile({SourceKind::kGbnf, "root ::= a a a\na ::= b |\nb ::= a \"x\" | \"y\"", {}}));
  for (const char* good : {"", "x", "yxx", "xyy"}) EXPECT_TRUE(accepts(empty, good)) << good;
  EXPECT_FALSE(accepts(empty, "yyyy"));
}

TEST(Gbnf, Tokens) {
  const SmallTokens& tokens = bytes_alone();
  Matcher matcher(
      must(compile({SourceKind::kGbnf, fmt::format("root ::= \"a\" <[{}]> [0-9]+", tokens.special(0)), {}})),
      tokens.vocabulary);
  EXPECT_TRUE(matcher.accept('a').value());
  EXPECT_FALSE(matcher.accept('1').value());
  EXPECT_TRUE(matcher.accept(tokens.special(0)).value());
  EXPECT_TRUE(matcher.accept('1').value());
  EXPECT_TRUE(matcher.is_complete());
}

TEST(Gbnf, Errors) {
  const auto error = [](std::string text) {
    const auto made = compile({SourceKind::kGbnf, std::move(text), {}});
    return made ? std::string("none") : made.error().message;
  };
  EXPECT_EQ(error("a ::= \"x\""), "[gbnf] there is no rule \"root\"");
  EXPECT_EQ(error("root ::= b"), "[gbnf] the rule \"b\" is used and not defined");
  EXPECT_EQ(error("root ::= \"x"), "[gbnf] line 1: a literal or class that does not end");
  EXPECT_EQ(error("root ::= \"x\"\nroot ::= \"y\""), "[gbnf] line 2: the rule \"root\" is defined twice");
  EXPECT_EQ(error("root = x"), "[gbnf] line 1: ::= is wanted behind a rule's name");
  EXPECT_EQ(error("root ::= ( \"x\""), "[gbnf] line 1: a ) is wanted");
  EXPECT_EQ(error("root ::= <think>"),
            "[gbnf] line 1: tokens by name and their negation are not supported; <[number]> is");
  EXPECT_EQ(error("root ::= root \"x\""), "[grammar] no text at all fits");
  EXPECT_TRUE(error("root ::= \"x\"{20000}").starts_with("[grammar_too_complex]"));
}

}  // namespace
}  // namespace zinc_rt::grammar
