// Structural tags: which texts they allow, and what is refused with its place.
#include "engine/structural_tag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grammar/json_reader.h"

namespace zinc_rt {
namespace {

using testing::HasSubstr;

// Ids 0 to 255 are the bytes, 256 the token "<call>", 257 the end.
constexpr std::string_view kTokenText = "<call>";

std::shared_ptr<const grammar::Vocabulary> byte_and_call_tokens() {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  texts.resize(258);
  return grammar::Vocabulary::make(texts, {257}).value();
}

Result<grammar::Grammar> tag_grammar(std::string_view tag, bool with_token = false) {
  grammar::Builder builder;
  const auto root = read_structural_tag(tag, builder, [&](std::string_view text) -> grammar::Marker {
    return {std::string(text), with_token && text == kTokenText ? std::optional(256) : std::nullopt};
  });
  if (!root) return std::unexpected(root.error());
  return builder.finish(*root);
}

bool fits_tag(const grammar::Grammar& grammar, std::string_view text) {
  static const auto vocabulary = byte_and_call_tokens();
  grammar::Matcher matcher(grammar, vocabulary);
  while (!text.empty()) {
    // "@" stands for the token.
    const auto id = text[0] == '@' ? 256 : static_cast<std::uint8_t>(text[0]);
    if (!matcher.accept(id).value()) return false;
    text.remove_prefix(1);
  }
  return matcher.is_complete();
}

void expect_texts(std::string_view tag, std::initializer_list<const char*> good, std::initializer_list<const char*> bad,
                  bool with_token = false) {
  const auto grammar = tag_grammar(tag, with_token);
  ASSERT_TRUE(grammar) << tag << ": " << grammar.error().message;
  for (const char* text : good) EXPECT_TRUE(fits_tag(*grammar, text)) << tag << ": " << text;
  for (const char* text : bad) EXPECT_FALSE(fits_tag(*grammar, text)) << tag << ": " << text;
}

constexpr const char* kStructures = R"({"type":"structural_tag","structures":[
  {"begin":"<function=f>","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],
   "additionalProperties":false},"end":"</function>"},
  {"begin":"<function=g>","schema":{"type":"boolean"},"end":"</function>"}],"triggers":["<function="]})";

TEST(StructuralTag, StructuresBindWhatStandsInTheirTags) {
  expect_texts(kStructures,
               {"", "no tag, 1 < 2", "<function=f>{\"a\": 1}</function>",
                "so: <function=f>{\"a\":1}</function> and <function=g>true</function>."},
               {"<function=", "<function=h>1</function>", "<function=f>{}</function>", "<function=g>1</function>",
                "<function=g>true", "<function=g>true</fun"});
}

TEST(StructuralTag, ATriggerThatIsATokenCountsAsThatTokenAlone) {
  constexpr const char* kTag = R"({"structures":[
    {"begin":"<call>f:","schema":{"type":"integer"},"end":";"},
    {"begin":"<call>g:","schema":{"type":"null"},"end":";"}],"triggers":["<call>"]})";
  expect_texts(kTag, {"a <call>f:1; b", "<call>g:null;"}, {"<call>", "<call>f:null;"});
  expect_texts(kTag, {"a @f:1; b", "@g:null;@f:2;", "<call> in a text"}, {"@", "@f:null;", "@h:1;"}, true);
}

TEST(StructuralTag, Formats) {
  const auto format = [](std::string_view inner) {
    return R"({"type":"structural_tag","format":)" + std::string(inner) + "}";
  };
  expect_texts(format(R"({"type":"const_string","value":"abc"})"), {"abc"}, {"", "ab", "abcd"});
  expect_texts(format(R"({"type":"json_schema","json_schema":{"enum":[1,"x"]}})"), {"1", "\"x\""}, {"2", ""});
  expect_texts(format(R"({"type":"regex","pattern":"a+b"})"), {"ab", "aab"}, {"b", "abc"});
  expect_texts(format(R"({"type":"grammar","grammar":"root ::= \"x\" root | \"y\""})"), {"y", "xxy"}, {"", "x"});
  expect_texts(format(R"({"type":"any_text","excludes":["no"]})"), {"", "yes n o"}, {"a no"});
  expect_texts(
      format(R"({"type":"or","elements":[{"type":"const_string","value":"a"},{"type":"regex","pattern":"b*"}]})"),
      {"a", "", "bb"}, {"ab"});
  expect_texts(format(R"({"type":"sequence","elements":[
          {"type":"tag","begin":"<think>","content":{"type":"any_text"},"end":"</think>"},
          {"type":"optional","content":{"type":"const_string","value":"!"}},
          {"type":"plus","content":{"type":"regex","pattern":"[ab]"}}]})"),
               {"<think>x < y</think>a", "<think></think>!abba"},
               {"a", "<think>x</think>", "<think>a</think>b</think>a"});
  expect_texts(
      format(R"({"type":"tag","begin":"(","content":{"type":"star","content":{"type":"const_string","value":"x"}},
          "end":["!","]"]
})"),
      {"(!", "(xx]"}, {"(", "(x", "(x!]"});
  expect_texts(format(R"({"type":"repeat","min":1,"max":2,"content":{"type":"const_string","value":"ab"}})"),
               {"ab", "abab"}, {"", "ababab"});
  expect_texts(format(R"({"type":"repeat","min":2,"max":-1,"content":{"type":"const_string","value":"a"}})"),
               {"aa", "aaaaa"}, {"", "a"});
  expect_texts(format(R"({"type":"triggered_tags","triggers":["<f"],"excludes":["bad"],"at_least_one":true,
          "stop_after_first":true,"tags":[
            {"type":"tag","begin":"<f1>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</f>"},
            {"begin":"<f2>","content":{"type":"any_text"},"end":"</f>"}]})"),
               {"<f1>7</f>", "text <f2>a<b</f>"},
               {"", "text", "<f1>7</f> more", "bad <f1>7</f>", "<f3>", "<f2>a</f></f>"});
  expect_texts(format(R"({"type":"tags_with_separator","separator":", ","at_least_one":true,"tags":[
            {"begin":"[","content":{"type":"regex","pattern":"[0-9]"},"end":"]"}]})"),
               {"[1]", "[1], [2], [3]"}, {"", "[1],[2]", "[1], "});
  // Free text that a tag ends has not the tag's end in it, whatever stands between.
  expect_texts(format(R"({"type":"tag","begin":"<a>","content":{"type":"triggered_tags","triggers":["<b>"],"tags":[
            {"begin":"<b>","content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</b>"}]},"end":"</a>"})"),
               {"<a>x<b>1</b>y</a>", "<a></a>"}, {"<a>x</a>y</a>", "<a><b>x</b></a>", "<a><b>1</b>"});
}

TEST(StructuralTag, WhatIsWrongIsRefusedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "[structural_tag] the whole: an object is wanted"},
      {"{", "[structural_tag] the whole: [schema]"},
      {R"({"type":"structural_tag"})", "one of format and structures is wanted"},
      {R"({"type":"x","format":{"type":"any_text"}})", "type: structural_tag is wanted"},
      {R"({"structures":[],"triggers":["a"]})", "structures: a list that is not empty is wanted"},
      {R"({"structures":[{"begin":"a","schema":{},"end":"b"}]})", "triggers: a list that is not empty is wanted"},
      {R"({"structures":[{"begin":"a","schema":{},"end":"b"}],"triggers":[""]})", "triggers: a list of texts that are"},
      {R"({"structures":[{"begin":"a","schema":{},"end":"b"}],"triggers":["c"]})",
       "no tag begins with the trigger \"c\""},
      {R"({"structures":[{"begin":"a","schema":{},"end":"b"},{"begin":"c","schema":{},"end":"b"}],"triggers":["a"]})",
       "tag 1 begins with no trigger: \"c\""},
      {R"({"structures":[{"begin":1,"schema":{},"end":"b"}],"triggers":["a"]})",
       "structures[0].begin: a text is wanted"},
      {R"({"structures":[{"begin":"a","end":"b"}],"triggers":["a"]})", "structures[0].schema: a JSON schema is wanted"},
      {R"({"structures":[{"begin":"a","schema":[],"end":"b"}],"triggers":["a"]})",
       "structures[0].schema: a JSON schema"},
      {R"({"structures":[{"begin":"a","schema":{"not":{"type":"null"}},"end":"b"}],"triggers":["a"]})",
       "structures[0].schema: [schema] /not: this keyword is not enforced"},
      {R"({"structures":[{"begin":"a","schema":{},"end":"b","x":1}],"triggers":["a"]})",
       "structures[0].x: no such field"},
      {R"({"format":{"type":"any_text"},"triggers":["a"]})", "triggers: it goes with structures"},
      {R"({"format":{"type":"any_tokens"}})", "format.type: \"any_tokens\" is given, one of const_string,"},
      {R"({"format":{"type":"any_text","max_tokens":3}})", "format.max_tokens: no such field"},
      {R"({"format":{"type":"regex","pattern":"("}})", "format: [regex] byte 1"},
      {R"({"format":{"type":"grammar","grammar":"x"}})", "format: [gbnf]"},
      {R"({"format":{"type":"sequence","elements":[{"type":"or","elements":[]}]}})",
       "format.elements[0].elements: a list that is not empty is wanted"},
      {R"({"format":{"type":"json_schema","json_schema":{},"style":"qwen_xml"}})",
       "format.style: json is the only one"},
      {R"({"format":{"type":"repeat","min":3,"max":2,"content":{"type":"any_text"}}})", "format: min 3 is above max 2"},
      {R"({"format":{"type":"repeat","min":1,"max":99999,"content":{"type":"any_text"}}})",
       "format.max: a whole number"},
      {R"({"format":{"type":"tag","begin":"a","content":{"type":"any_text"},"end":[]}})",
       "format.end: a text or a list"},
      {R"({"format":{"type":"tag","begin":"a","end":"b"}})", "format.content: an object with a type"},
      {R"({"format":{"type":"triggered_tags","triggers":["a"],"tags":[{"begin":"a","content":{"type":"any_text"},
          "end":"b"}],"at_least_one":1}})",
       "format.at_least_one: true or false is wanted"},
      {R"({"format":null,"structures":null})", "one of format and structures is wanted"},
  };
  for (const auto& [tag, words] : cases) {
    const auto grammar = tag_grammar(tag);
    ASSERT_FALSE(grammar) << tag;
    EXPECT_EQ(grammar.error().code, StatusCode::kInvalidArgument);
    EXPECT_THAT(grammar.error().message, HasSubstr(words)) << tag;
  }
}

TEST(StructuralTag, HostileOnesAreRefused) {
  std::string deep = R"({"type":"any_text"})";
  for (int i = 0; i < 40; ++i) deep = R"({"type":"optional","content":)" + deep + "}";
  EXPECT_TRUE(tag_grammar(R"({"format":)" + deep + "}"));
  for (int i = 0; i < 60; ++i) deep = R"({"type":"optional","content":)" + deep + "}";
  EXPECT_THAT(tag_grammar(R"({"format":)" + deep + "}").error().message, HasSubstr("more than 64 levels"));
  std::string wide = R"({"type":"const_string","value":"a"})";
  for (int i = 0; i < 12'000; ++i) wide += R"(,{"type":"const_string","value":"a"})";
  EXPECT_THAT(tag_grammar(R"({"format":{"type":"or","elements":[)" + wide + "]}}").error().message,
              HasSubstr("[grammar_too_complex]"));
  EXPECT_THAT(tag_grammar(std::string(200'000, '[')).error().message, HasSubstr("[grammar_too_complex]"));
}

}  // namespace
}  // namespace zinc_rt
