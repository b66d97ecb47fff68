// Tokens against bytes: masks, forks, forced runs, end tokens, markers; and that all tokenizations of a text end alike.
#include <algorithm>
#include <random>
#include <thread>

#include "tests_cpp/grammar/grammar_fixture.h"

namespace zinc_rt::grammar {
namespace {

const SmallTokens& longer_tokens() {
  static const SmallTokens tokens(
      {"{\"",   "\":",       "\": ", "\",",    "\", \"", "\"}",  "}",     "{}",       "[]",      "[1",
       "],",    "  ",        "\n\n", "true",   "fal",    "se",   "null",  "12",       "123",     "0.",
       "-1",    "e+",        "ab",   "abc",    "bca",    "aaaa", "name",  "\"name\"", "\\n",     "\\\"",
       "\\u00", "é",         "\xC3", "\xA9\"", "</t",    "<t>",  "</t>x", "a</",      "<t>a",    "1,2",
       ",",     "\t\n \r\t", "({",   "))",     "x=1",    "==",   "b\"",   "\"a",      "\":1,\"b"});
  return tokens;
}

std::vector<Grammar> grammars() {
  std::vector<Grammar> made;
  made.push_back(schema(R"({})"));
  made.push_back(schema(R"({"type": "object"})"));
  made.push_back(schema(
      R"({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}, "b": {"enum": [1, 12, 123, "ab"]},
                            "name": {"type": "array", "items": {"type": "number"}, "maxItems": 3}}, "required": ["b"]})"));
  made.push_back(schema(R"({"type": "object", "properties": {"a": {"pattern": "^[a-c]+$", "type": "string"}},
                            "additionalProperties": {"type": "boolean"}})"));
  made.push_back(schema(
      R"({"anyOf": [{"type": "integer", "minimum": 10, "maximum": 130}, {"type": "array", "items": {"$ref": "#"}}]})"));
  made.push_back(must(compile({SourceKind::kRegex, "(a|ab)*(c|bca)[1-3]{2,4}(?:true|é)?", {}})));
  made.push_back(
      must(compile({SourceKind::kChoice, "", {"a", "ab", "abc", "true", "é", "\xC3\xA9\xC3\xA9", "12", "123"}})));
  made.push_back(
      must(compile({SourceKind::kGbnf, "root ::= e\ne ::= e \"=\" e | \"(\" e \")\" | [a-c]+ | [0-9]+ \"\"?", {}})));
  made.push_back(
      must(compile({SourceKind::kGbnf, "root ::= [a-c]* [a-c]* \"x\"* w\nw ::= \" \" w | \"\\n\" w | \"\"", {}})));
  Builder builder;
  const auto json =
      builder.json(R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})").value();
  made.push_back(must(builder.finish(
      builder
          .tagged_text({{},
                        {{{"<t>", {}}, json, {"</t>", {}}}, {{"<tt>", {}}, builder.text_until("</"), {"", {}}}},
                        false,
                        false})
          .value())));
  return made;
}

// Matchers of one grammar have a few sets of tables between them: on however many threads, each has the masks that it
// would have alone.
TEST(Matcher, ManyAnswersOfAGrammarAtOnce) {
  const SmallTokens& tokens = longer_tokens();
  for (const Grammar& grammar : grammars()) {
    const auto walk = [&](unsigned seed) {
      std::mt19937 random(seed);
      std::vector<std::vector<std::uint32_t>> masks;
      Matcher matcher(grammar, tokens.vocabulary);
      for (int step = 0; step < 20 && !matcher.is_ended(); ++step) {
        masks.push_back(mask_of(matcher));
        std::vector<std::int32_t> allowed;
        for (std::size_t i = 0; i < masks.back().size() * 32; ++i)
          if (masks.back()[i / 32] >> (i % 32) & 1u) allowed.push_back(static_cast<std::int32_t>(i));
        if (allowed.empty()) break;
        EXPECT_TRUE(matcher.accept(allowed[random() % allowed.size()]).value_or(false));
      }
      return masks;
    };
    constexpr unsigned kAnswers = 24;
    std::vector<decltype(walk(0u))> at_once(kAnswers);
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
          for (unsigned i = t; i < kAnswers; i += 4) at_once[i] = walk(i);
        });
    }
    for (unsigned i = 0; i < kAnswers; ++i) EXPECT_EQ(at_once[i], walk(i));
  }
}

TEST(Matcher, MasksAreWhatAcceptSays) {
  std::mt19937 random(7);
  const SmallTokens& tokens = longer_tokens();
  const auto all = grammars();
  for (std::size_t g = 0; g < all.size(); ++g) {
    for (int round = 0; round < 6; ++round) {
      Matcher matcher(all[g], tokens.vocabulary);
      for (int step = 0; step < 25; ++step) {
        const auto mask = mask_of(matcher);
        std::vector<std::int32_t> allowed;
        for (std::int32_t id = 0; id < static_cast<std::int32_t>(tokens.vocabulary->size()); ++id) {
          Matcher fork = matcher;
          const bool fits = fork.accept(id).value();
          ASSERT_EQ(fits, has_bit(mask, id)) << "grammar " << g << " step " << step << " token " << id;
          if (fits && id != tokens.end) allowed.push_back(id);
        }
        ASSERT_EQ(has_bit(mask, tokens.end), matcher.is_complete());
        if (allowed.empty()) {
          ASSERT_TRUE(matcher.is_complete()) << "grammar " << g << ": a dead end";
          break;
        }
        // Long tokens more often than their number says.
        std::ranges::shuffle(allowed, random);
        const auto longest =
            std::ranges::max(allowed, {}, [&](std::int32_t id) { return tokens.vocabulary->bytes(id).size(); });
        ASSERT_TRUE(matcher.accept(random() % 3 == 0 ? longest : allowed[0]).value());
      }
    }
  }
}

TEST(Matcher, AllTokenizationsOfATextEndAlike) {
  std::mt19937 random(11);
  const SmallTokens& tokens = longer_tokens();
  const auto all = grammars();
  for (std::size_t g = 0; g < all.size(); ++g) {
    for (int round = 0; round < 20; ++round) {
      // A text that the grammar allows byte by byte, at times with one byte changed.
      Matcher bytes(all[g], bytes_alone().vocabulary);
      std::string text;
      for (int i = 0; i < 40; ++i) {
        const auto mask = mask_of(bytes);
        std::vector<std::int32_t> allowed;
        for (std::int32_t id = 0; id < 256; ++id)
          if (has_bit(mask, id) && (id < 128 || random() % 8 == 0)) allowed.push_back(id);
        if (allowed.empty() || (bytes.is_complete() && random() % 4 == 0)) break;
        const auto id = allowed[random() % allowed.size()];
        ASSERT_TRUE(bytes.accept(id).value());
        text += static_cast<char>(id);
      }
      if (round % 3 == 0 && !text.empty()) text[random() % text.size()] = "a\"{}1, x"[random() % 8];
      const bool fits = accepts(all[g], text);
      const std::size_t good = beginning(all[g], text);
      for (int way = 0; way < 5; ++way) {
        Matcher matcher(all[g], tokens.vocabulary);
        std::size_t at = 0;
        while (at < text.size()) {
          std::vector<std::int32_t> next;
          for (std::int32_t id = 0; id < tokens.end; ++id)
            if (std::string_view(text).substr(at).starts_with(tokens.vocabulary->bytes(id))) next.push_back(id);
          const std::int32_t id = next[random() % next.size()];
          const std::size_t n = tokens.vocabulary->bytes(id).size();
          const bool is_allowed = has_bit(mask_of(matcher), id);
          ASSERT_EQ(is_allowed, at + n <= good) << "grammar " << g << " text " << text << " at " << at;
          ASSERT_EQ(matcher.accept(id).value(), is_allowed);
          if (!is_allowed) break;
          at += n;
        }
        if (at == text.size()) {
          ASSERT_EQ(matcher.is_complete(), fits) << "grammar " << g << " text " << text;
        }
      }
    }
  }
}

TEST(Matcher, RefusedTokensChangeNothing) {
  Matcher matcher(schema(R"({"type": "array", "items": {"type": "integer"}})"), longer_tokens().vocabulary);
  for (const std::string_view part : {"[", "1", "2", ",", "3", "]"}) {
    const auto before = mask_of(matcher);
    EXPECT_FALSE(matcher.accept('x').value());
    EXPECT_FALSE(matcher.accept(-1).value());
    EXPECT_FALSE(matcher.accept(1 << 20).value());
    EXPECT_FALSE(matcher.accept_text("1,2,x").value());
    EXPECT_EQ(mask_of(matcher), before);
    EXPECT_TRUE(matcher.accept_text(part).value());
  }
  EXPECT_TRUE(matcher.is_complete());
}

TEST(Matcher, TheEnd) {
  const SmallTokens& tokens = longer_tokens();
  Matcher matcher(must(compile({SourceKind::kChoice, "", {"ab", "abc"}})), tokens.vocabulary);
  EXPECT_FALSE(matcher.is_complete());
  EXPECT_FALSE(matcher.accept(tokens.end).value());
  EXPECT_TRUE(matcher.accept_text("ab").value());
  EXPECT_TRUE(matcher.is_complete());
  Matcher fork = matcher;
  EXPECT_TRUE(matcher.accept(tokens.end).value());
  EXPECT_TRUE(matcher.is_ended());
  EXPECT_FALSE(matcher.accept('c').value());
  EXPECT_FALSE(fork.is_ended());
  EXPECT_TRUE(fork.accept('c').value());
  EXPECT_TRUE(fork.is_complete());
  const auto mask = mask_of(fork);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(tokens.vocabulary->size()); ++id)
    EXPECT_EQ(has_bit(mask, id), id == tokens.end);
}

TEST(Matcher, ForcedTokens) {
  const SmallTokens& tokens = bytes_alone();
  Matcher matcher(schema(R"({"type": "object", "properties": {"kind": {"const": "x"}, "n": {"type": "integer"}},
                             "required": ["kind", "n"], "additionalProperties": false})",
                         {{}, {0, {}}}),
                  tokens.vocabulary);
  std::string text;
  const auto forced = matcher.forced(100).value();
  for (const std::int32_t id : forced) text += static_cast<char>(id);
  EXPECT_EQ(text, R"({"kind":"x","n":)");
  EXPECT_EQ(matcher.forced(3).value().size(), 3u);
  for (const std::int32_t id : forced) EXPECT_TRUE(matcher.accept(id).value());
  EXPECT_TRUE(matcher.forced(10).value().empty());
}

TEST(Matcher, OfForcedTextTheLongestTokens) {
  const auto vocabulary = Vocabulary::make({"a", "b", "ab", "abc", "x", "xy", "y", "z", ""}, {8}).value();
  const auto forced = [&](std::vector<std::string> texts) {
    return Matcher(compile({SourceKind::kChoice, "", std::move(texts)}).value(), vocabulary).forced(9).value();
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(forced({"abxyz"}), (Ids{2, 5, 7}));
  EXPECT_EQ(forced({"abxyz", "abxyx"}), (Ids{2, 5}));
  EXPECT_EQ(forced({"abxyz", "bx"}), (Ids{}));
  EXPECT_EQ(forced({"abxyz", "abcx"}), (Ids{3, 4}));  // though x may follow after ab
  EXPECT_EQ(forced({"zx", "zxy"}), (Ids{7, 5}));      // though the text may end after x
}

TEST(Matcher, MarkersThatAreOneToken) {
  const SmallTokens& tokens = longer_tokens();
  Builder builder;
  const auto call =
      builder
          .json(
              R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false})")
          .value();
  const auto root =
      builder.tagged_text({{}, {{{"", tokens.special(0)}, call, {"", tokens.special(1)}}}, true, false}).value();
  Matcher matcher(must(builder.finish(root)), tokens.vocabulary);
  EXPECT_TRUE(matcher.accept_text("free text </t> {").value());
  EXPECT_FALSE(matcher.is_complete());
  EXPECT_TRUE(has_bit(mask_of(matcher), tokens.special(0)));
  EXPECT_FALSE(has_bit(mask_of(matcher), tokens.special(1)));
  EXPECT_FALSE(matcher.accept(tokens.special(1)).value());
  EXPECT_TRUE(matcher.accept(tokens.special(0)).value());
  EXPECT_FALSE(matcher.accept('x').value());
  EXPECT_FALSE(matcher.accept(tokens.special(1)).value());
  EXPECT_TRUE(matcher.accept_text("{\"a\": 12}").value());
  EXPECT_FALSE(matcher.is_complete());
  const auto forced = matcher.forced(5).value();
  ASSERT_EQ(forced.size(), 1u);
  EXPECT_EQ(forced[0], tokens.special(1));
  EXPECT_TRUE(matcher.accept(tokens.special(1)).value());
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_TRUE(matcher.accept_text("more").value());
  EXPECT_TRUE(matcher.accept(tokens.special(0)).value());
  EXPECT_FALSE(matcher.is_complete());
}

TEST(Matcher, AMarkerWithBytesIsNoText) {
  // A token that the grammar names by its id is that marker alone, though its bytes would be text.
  const SmallTokens& tokens = longer_tokens();
  std::int32_t marker = 0;
  while (tokens.vocabulary->bytes(marker) != "</t>x") ++marker;
  Builder builder;
  const auto root = builder.sequence({builder.text("a"), builder.token(marker), builder.free_text()});
  Matcher matcher(must(builder.finish(root)), tokens.vocabulary);
  EXPECT_TRUE(matcher.accept('a').value());
  EXPECT_FALSE(matcher.accept('<').value());
  EXPECT_TRUE(matcher.accept(marker).value());
  EXPECT_FALSE(has_bit(mask_of(matcher), marker));
  EXPECT_FALSE(matcher.accept(marker).value());
  EXPECT_TRUE(matcher.accept_text("</t>x").value());
}

TEST(Matcher, TaggedText) {
  const auto make = [](bool at_least_one, bool ends) {
    Builder builder;
    const auto number = builder.regex("[0-9]+").value();
    return must(builder.finish(builder
                                   .tagged_text({{{"<f=", {}}},
                                                 {{{"<f=a>", {}}, number, {"</f>", {}}},
                                                  {{"<f=b>", {}}, builder.text_until("</f>"), {"", {}}}},
                                                 at_least_one,
                                                 ends})
                                   .value()));
  };
  const Grammar free = make(false, false);
  for (const char* good : {"", "text", "a<f", "<f=a>12</f>", "x<f=b>any<f=</f>y<f=a>1</f>", "< f=a>"})
    EXPECT_TRUE(accepts(free, good)) << good;
  for (const char* bad : {"<f=", "<f=c>", "<f=a>x</f>", "<f=a>1", "x<f=a>1</f><f="})
    EXPECT_FALSE(accepts(free, bad)) << bad;
  const Grammar one = make(true, true);
  for (const char* good : {"<f=a>12</f>", "text<f=b></f>"}) EXPECT_TRUE(accepts(one, good)) << good;
  for (const char* bad : {"", "text", "<f=a>12</f>text", "<f=a>1</f><f=a>1</f>"})
    EXPECT_FALSE(accepts(one, bad)) << bad;
  Builder builder;
  EXPECT_EQ(
      builder.tagged_text({{{"<x", {}}}, {{{"<f=a>", {}}, builder.text(""), {"", {}}}}, false, false}).error().message,
      "[tags] no tag begins with the trigger \"<x\"");
}

TEST(Matcher, SequencesAlternativesAndRepeats) {
  Builder builder;
  const auto call = builder.alternatives(
      {builder.text("f()"),
       builder.sequence({builder.text("g("), builder.regex("[a-z]*").value(), builder.text(")")})});
  const auto root = builder.repeat(call, 1, 3, builder.text(";"));
  const Grammar made = must(builder.finish(root));
  for (const char* good : {"f()", "g()", "g(xy);f()", "f();f();f()"}) EXPECT_TRUE(accepts(made, good)) << good;
  for (const char* bad : {"", "f();", "f()f()", "f();f();f();f()"}) EXPECT_FALSE(accepts(made, bad)) << bad;
}

TEST(Matcher, LongAnswersStaySmall) {
  Matcher matcher(schema(R"({"type": "array", "items": {"type": ["integer", "string"]}})"), bytes_alone().vocabulary);
  ASSERT_TRUE(matcher.accept('[').value());
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(matcher.accept_text("123, \"abc\", ").value());
  ASSERT_TRUE(matcher.accept_text("1]").value());
  EXPECT_TRUE(matcher.is_complete());
  EXPECT_LT(matcher.n_bytes(), 200'000u);
}

}  // namespace
}  // namespace zinc_rt::grammar
