// Control tokens are matched only where the text is not from outside.
#include "tokenizer/outside_text.h"

#include <algorithm>
#include <random>

#include "tests_cpp/tokenizer/small_vocab.h"
#include "tests_cpp/tokenizer/tokenizer_fixture.h"

namespace zinc_rt {
namespace {

struct Tokens {
  Tokenizer tokenizer;
  std::int32_t start, end, call, think, wide;
};

Tokens make_tokens(bool spm) {
  SmallVocab v = spm ? SmallVocab::spm() : SmallVocab::byte_level();
  const int start = v.add("<|start|>", 3), end = v.add("<|end|>", 3), call = v.add("[CALL]", 3);
  const int think = v.add("<think>", 4), wide = v.add("<|end|><|start|>", 3);
  return {*Tokenizer::from_metadata(v.metadata(spm ? "llama" : "gpt2")), start, end, call, think, wide};
}

std::vector<std::int32_t> encoded(const Tokenizer& tokenizer, const MarkedText& text,
                                  std::vector<std::int32_t> allowed = {}) {
  auto ids = tokenizer.encode(text.text(), false, true, {}, {text.marks(), allowed});
  if (!ids) ADD_FAILURE() << ids.error().message;
  return ids.value_or(std::vector<std::int32_t>());
}

// « and » enclose what is from outside.
MarkedText marked(std::string_view text) {
  MarkedText out;
  bool outside = false;
  while (!text.empty()) {
    const std::string_view quote = outside ? "»" : "«";
    const auto end = text.find(quote);
    out.append(text.substr(0, end), outside);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + quote.size());
    outside = !outside;
  }
  return out;
}

class OutsideTextOf : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, OutsideTextOf, testing::Bool(),
                         [](const auto& one) { return one.param ? "Spm" : "ByteLevel"; });

TEST_P(OutsideTextOf, NamesNoControlToken) {
  const auto t = make_tokens(GetParam());
  using Ids = std::vector<std::int32_t>;
  const struct {
    const char* text;
    Ids special;  // that come of it, in order
    Ids allowed = {};
  } rows[] = {
      {"<|start|>«hello»<|end|>", {t.start, t.end}},
      {"<|start|>«<|end|>»<|end|>", {t.start, t.end}},
      {"«<|end|>»", {}},
      {"<|st«art|>»", {}},
      {"«<|st»art|>", {}},
      {"<|«start»|>", {}},
      {"<|start|«>»", {}},
      {"<|start|>«»<|end|>", {t.start, t.end}},
      {"<|end|><|start|>", {t.wide}},
      {"<|end|>«<|start|>»", {t.end}},
      {"<|end|><|st«art|>»", {t.end}},
      {"«<|end|>»<|start|>", {t.start}},
      {"«<think>»<think>", {t.think, t.think}},
      {"<thi«nk>»", {t.think}},
      {"«[CALL]»[CALL]", {t.call, t.call}, {t.call}},
      {"«[CALL]<|end|>»[CA«LL]»", {t.call, t.call}, {t.call}},
      {"«[CALL]»[CALL]", {t.call}},
      // One that overlaps what is matched.
      {"«<|end|»>«<|start|>»<|start|>", {t.start}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    const auto text = marked(row.text);
    const auto ids = encoded(t.tokenizer, text, row.allowed);
    Ids special;
    std::ranges::copy_if(ids, std::back_inserter(special), [&](auto id) { return id >= t.start; });
    EXPECT_EQ(special, row.special);
    // What is not matched is text as any other.
    EXPECT_EQ(text_of(t.tokenizer, ids), text.text());
  }
}

TEST_P(OutsideTextOf, AllOrNothingIsWhatParseSpecialSays) {
  const auto t = make_tokens(GetParam());
  const std::string text = "<|start|>hello <|end|><|start|> <think> [CALL]";
  EXPECT_EQ(encoded(t.tokenizer, MarkedText(text, true)), ids_of(t.tokenizer, text, false, false));
  EXPECT_EQ(encoded(t.tokenizer, MarkedText(text)), ids_of(t.tokenizer, text, false, true));
  // parse_special off: nothing that is allowed is matched either.
  EXPECT_EQ(*t.tokenizer.encode(text, false, false, {}, {{}, std::vector<std::int32_t>{t.call}}),
            ids_of(t.tokenizer, text, false, false));
}

TEST(OutsideText, NoControlTokenTouchesIt) {
  const auto t = make_tokens(false);
  std::mt19937 random(3);
  const std::string_view pieces[] = {"<|start|>", "<|end|>", "<|",    "|>", "start",
                                     "[CALL]",    "<think>", "hello", " ",  "<|end|><|"};
  for (int round = 0; round < 2000; ++round) {
    MarkedText text;
    for (int k = 0; k < 12; ++k) {
      const auto piece = pieces[random() % std::size(pieces)];
      const auto cut = random() % 3 == 0 ? random() % piece.size() : 0;
      text.append(piece.substr(cut), random() % 2 == 0);
    }
    const auto ids = encoded(t.tokenizer, text);
    ASSERT_EQ(text_of(t.tokenizer, ids), text.text());
    std::size_t at = 0;
    std::size_t n_control = 0;
    for (const auto id : ids) {
      const std::size_t size = t.tokenizer.token_bytes(id).size();
      if (t.tokenizer.is_special(id)) {
        EXPECT_FALSE(text.view().sub(at, size).has_marks()) << text.text() << " at " << at;
        ++n_control;
      }
      at += size;
    }
    // And none of those is missed that stand in what is not from outside: as many as its stretches have alone.
    std::size_t n_wanted = 0;
    text.view().for_each_run([&](std::string_view run, bool is_marked) {
      if (is_marked) return;
      for (const auto id : ids_of(t.tokenizer, run, false, true)) n_wanted += t.tokenizer.is_special(id);
    });
    EXPECT_EQ(n_control, n_wanted) << text.text();
  }
}

}  // namespace
}  // namespace zinc_rt
