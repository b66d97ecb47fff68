// Unicode's form C, by the tables that it is made of and by rules. tests_py/test_nfc.py compares it with Python's.
#include "tokenizer/nfc.h"

#include <gtest/gtest.h>

#include <span>

#include "base/utf8.h"
#include "tests_cpp/base/random_text.h"
#include "tests_cpp/tokenizer/small_vocab.h"
#include "tests_cpp/tokenizer/tokenizer_fixture.h"
#include "tokenizer/nfc_tables.h"
#include "tokenizer/pre_rules.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt {
namespace {

std::string utf8_of(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters) append_utf8(out, c);
  return out;
}

std::string nfc(std::string_view text) {
  return to_nfc(text).value_or(std::string(text));
}

struct NfcCase {
  std::u32string_view text, wanted;
};

TEST(Nfc, Rules) {
  const NfcCase cases[] = {
      {U"cafe\u0301", U"caf\u00e9"},
      {U"e\u0301\u0323", U"\u1eb9\u0301"},  // marks in the order of their classes, then composed
      {U"e\u0301\u0301", U"\u00e9\u0301"},  // one of two equals is left
      {U"e\u0316\u0301", U"\u00e9\u0316"},  // a mark of a lower class does not keep them apart
      {U"e\u0338\u0301", U"\u00e9\u0338"},  // nor one of a class of its own
      {U"\u0301e", U"\u0301e"},             // nothing before it
      {U"\u1100\u1161\u11a8", U"\uac01"},   // Hangul
      {U"\uac00\u11a8", U"\uac01"},
      {U"\uac01\u11a8", U"\uac01\u11a8"},  // a syllable takes one trailing consonant
      {U"\u1100\u11a7", U"\u1100\u11a7"},
      {U"\u212b", U"\u00c5"},  // singletons
      {U"\u2126\u0301", U"\u038f"},
      {U"\u0958", U"\u0915\u093c"},  // excluded from composition
      {U"\u0915\u093c", U"\u0915\u093c"},
      {U"\U0001d15e", U"\U0001d157\U0001d165"},
      {U"\u0344", U"\u0308\u0301"},              // not composed of its parts again
      {U"\u1fbe\u0308\u0301", U"\u0390"},        // the most that a text shrinks
      {U"\U000110a5\U000110ba", U"\U000110ab"},  // outside the first plane
      {U"\u0b47\u0b3e", U"\u0b4b"},              // a second part of class 0
      {U"\U000e0100", U"\U000e0100"},
      {U"\U0010ffff\u0301", U"\U0010ffff\u0301"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(nfc(utf8_of(text)), utf8_of(wanted)) << utf8_of(text);
}

TEST(Nfc, TextThatIsInTheFormIsNotCopied) {
  for (const char* text : {"", "plain", "caf\u00e9", "\u4e2d\u6587 \uac01 \u0416\u0451", "\u0301", "\xFF\xC3"})
    EXPECT_FALSE(to_nfc(text) && *to_nfc(text) != text) << text;
  EXPECT_EQ(to_nfc(std::string(1000, 'x') + "\u4e2d\u00e9\uac01"), std::nullopt);
}

TEST(Nfc, BytesThatAreNotUtf8StayAndPartTheText) {
  EXPECT_EQ(nfc("e\xFF\u0301"), "e\xFF\u0301");
  EXPECT_EQ(nfc("\xCC e\u0301\xCC"), "\xCC \u00e9\xCC");
  EXPECT_EQ(nfc("\xED\xA0\x80\u0301"), "\xED\xA0\x80\u0301");
  EXPECT_EQ(nfc("\xE1\x84\u1161"), "\xE1\x84\u1161");
}

TEST(Nfc, EachPairComposesAndDecomposedTextComesBack) {
  using namespace nfc_tables;
  for (const Pair& pair : std::span(pairs, n_pairs)) {
    EXPECT_EQ(nfc(utf8_of(std::u32string{pair.first, pair.second})), utf8_of(std::u32string{pair.composed}));
    EXPECT_EQ(nfc(utf8_of(std::u32string{pair.composed})), utf8_of(std::u32string{pair.composed}));
  }
  for (const Decomposition& one : std::span(decompositions, n_decompositions)) {
    std::u32string parts;
    for (const char32_t c : one.to)
      if (c != 0) parts += c;
    EXPECT_EQ(nfc(utf8_of(parts)), nfc(utf8_of(std::u32string{one.from})));
  }
}

TEST(Nfc, IsStableAndShrinksByNoMoreThanItSays) {
  RandomText random(7);
  using namespace nfc_tables;
  for (int i = 0; i < 20000; ++i) {
    std::u32string text;
    for (std::uint32_t n = 1 + random.below(8); n > 0; --n) {
      const Decomposition& one = decompositions[random.below(static_cast<std::uint32_t>(n_decompositions))];
      text += random.below(2) == 0 ? one.from : one.to[random.below(2) == 0 || one.to[1] == 0 ? 0 : 1];
    }
    const auto once = nfc(utf8_of(text));
    EXPECT_EQ(nfc(once), once);
    EXPECT_GE(once.size() * kMostNfcShrinks, utf8_of(text).size());
  }
}

// A run of marks is one stretch: its time must not grow with its square.
TEST(Nfc, LongRunsOfMarks) {
  std::string text = "e", marks;
  for (int i = 0; i < 1'000'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0316";
  const auto got = nfc(text);
  EXPECT_EQ(got.size(), text.size() - 1);
  EXPECT_TRUE(got.starts_with("\u00e9\u0316\u0316"));
  EXPECT_TRUE(got.ends_with("\u0301\u0301"));
}

Tokenizer with_pre(const char* pre) {
  SmallVocab vocab = SmallVocab::byte_level();
  vocab.add("<e\u0301>", 3);
  std::erase_if(vocab.more, [](const auto& one) { return one.first == "tokenizer.ggml.pre"; });
  vocab.set("pre", std::string(pre));
  auto made = Tokenizer::from_metadata(vocab.metadata("gpt2"));
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

TEST(Nfc, OfTheVocabulariesThatHaveIt) {
  for (const PreRule& rule : pre_rules()) {
    const Tokenizer t = with_pre(std::string(rule.name).c_str());
    EXPECT_EQ(t.normalizes(), rule.nfc) << rule.name;
    EXPECT_EQ(text_of(t, ids_of(t, "cafe\u0301 \xFF hello")),
              rule.nfc ? "caf\u00e9 \xFF hello" : "cafe\u0301 \xFF hello")
        << rule.name;
    EXPECT_EQ(ids_of(t, "hello"), ids_of(with_pre("gpt-2"), "hello")) << rule.name;
  }
  EXPECT_TRUE(with_pre("qwen2").normalizes() && with_pre("qwen35").normalizes() && with_pre("command-r").normalizes());
  EXPECT_FALSE(with_pre("gpt-2").normalizes() || with_pre("llama-bpe").normalizes());
}

// Special tokens are found in the text as it is, and nothing is composed across them.
TEST(Nfc, SpecialTokensComeFirst) {
  const Tokenizer t = with_pre("qwen2");
  const auto special = *t.find("<e\u0301>");
  EXPECT_EQ(ids_of(t, "<e\u0301>", false, true), std::vector<std::int32_t>({special}));
  const auto ids = ids_of(t, "e<s>\u0301<e\u0301>\u0338e\u0301", false, true);
  EXPECT_EQ(text_of(t, ids), "e<s>\u0301<e\u0301>\u0338\u00e9");
}

TEST(Nfc, TheLeastTokensOfATextAreNoMoreThanItHas) {
  const Tokenizer t = with_pre("qwen2");
  for (const std::string& text : {std::string("\u1fbe\u0308\u0301"), std::string("hello"), std::string("e\u0301")}) {
    std::string many;
    for (int i = 0; i < 200; ++i) many += text;
    EXPECT_LE(t.least_tokens(many), ids_of(t, many).size()) << text;
    EXPECT_GT(t.least_tokens(many), 0u);
  }
}

}  // namespace
}  // namespace zinc_rt
