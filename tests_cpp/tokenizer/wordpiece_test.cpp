// WordPiece: rules one by one, what a vocabulary must have, and the ids of the package `tokenizers` for many texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests_cpp/tokenizer/small_vocab.h"
#include "tests_cpp/tokenizer/tokenizer_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;
using TokenIds = std::vector<std::int32_t>;

SmallVocab word_pieces() {
  SmallVocab v;
  v.add("[PAD]", 3);
  v.add("[UNK]", 3);
  v.add("[CLS]", 3);
  v.add("[SEP]", 3);
  for (const char* token : {"\u2581the", "\u2581un", "able", "s", "\u2581,", "\u2581\u4e2d", "\u2581e", "\u2581\u1112",
                            "\u1161", "\u11ab", "\u2581x", "x", "\u2581[unused1]"})
    v.add(token);
  return v;
}
Tokenizer wordpiece(const SmallVocab& vocab) {
  auto tokenizer = Tokenizer::from_metadata(vocab.metadata("bert"));
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return *tokenizer;
}
std::string wordpiece_error(const SmallVocab& vocab) {
  const auto tokenizer = Tokenizer::from_metadata(vocab.metadata("bert"));
  return tokenizer ? "no error" : tokenizer.error().message;
}

TEST(WordPiece, TakesTheLongestTokensOfPlainLowerCaseWords) {
  const Tokenizer t = wordpiece(word_pieces());
  const auto ids = [&](std::string_view text) { return ids_of(t, text, true); };
  EXPECT_EQ(ids("The unables,the"), TokenIds({2, 4, 5, 6, 7, 8, 4, 3}));
  EXPECT_EQ(ids("\u00c9 \ud55c \u4e2dthe"), TokenIds({2, 10, 11, 12, 13, 9, 4, 3})) << "accents, Hangul, ideographs";
  EXPECT_EQ(ids("E\u0301\u3000the"), TokenIds({2, 10, 4, 3})) << "a mark of its own, a wide space";
  EXPECT_EQ(ids("th\u200be\x07 \xff the"), TokenIds({2, 4, 4, 3})) << "what is left out";
  EXPECT_EQ(ids("unq the"), TokenIds({2, 1, 4, 3})) << "a word that no tokens make";
  EXPECT_EQ(ids("un\u2581 s"), TokenIds({2, 1, 1, 3})) << "s begins no word";
  EXPECT_EQ(ids(std::string(100, 'x')).size(), 102u);
  EXPECT_EQ(ids(std::string(101, 'x')), TokenIds({2, 1, 3}));
  EXPECT_EQ(ids(""), TokenIds({2, 3}));
  EXPECT_EQ(ids_of(t, "the"), TokenIds({4})) << "without special tokens";
  EXPECT_EQ(ids_of(t, "the[SEP]the", true, true), TokenIds({2, 4, 3, 4, 3}));
  EXPECT_EQ(ids_of(t, "[SEP]", true, false), TokenIds({2, 1, 1, 1, 3})) << "brackets are words of their own";
  EXPECT_EQ(text_of(t, {4, 5, 6, 8}), "the unable ,");
  EXPECT_EQ(t.least_tokens("any text"), 0u);
}

TEST(WordPiece, StopsAtTheLimit) {
  const Tokenizer t = wordpiece(word_pieces());
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "the ";
  EXPECT_TRUE(t.encode(text, true, true, {.max_tokens = 1001}));
  const auto over = t.encode(text, true, true, {.max_tokens = 999});
  ASSERT_FALSE(over);
  EXPECT_THAT(over.error().message, HasSubstr("4000 bytes of text are more than 999 tokens"));
  std::stop_source stop;
  stop.request_stop();
  const auto cancelled = t.encode(text, true, true, {.cancel = stop.get_token()});
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, StatusCode::kCancelled);
}

TEST(WordPiece, WantsAnUncasedVocabularyAndItsOwnTokens) {
  auto cased = word_pieces();
  cased.add("\u2581The");
  EXPECT_THAT(wordpiece_error(cased), HasSubstr("token 17 (\"\u2581The\") has upper-case letters"));
  auto without = word_pieces();
  without.tokens[2] = "[BEGIN]";
  EXPECT_THAT(wordpiece_error(without),
              HasSubstr("neither the key tokenizer.ggml.cls_token_id nor a token [CLS] is there"));
  without.set("cls_token_id", std::int64_t{2});
  EXPECT_EQ(wordpiece_error(without), "no error");
  without.set("seperator_token_id", std::int64_t{17});
  EXPECT_THAT(wordpiece_error(without), HasSubstr("seperator_token_id: an id below 17 wanted, 17 there"));
  // Files exist that deny the tokens at the ends.
  auto denying = word_pieces();
  denying.set("add_bos_token", false);
  denying.set("add_eos_token", false);
  EXPECT_EQ(ids_of(wordpiece(denying), "the", true), TokenIds({2, 4, 3}));
}

// data/wordpiece.json: a vocabulary as Python writes it, and ids by the package `tokenizers` (make_wordpiece_cases.py).
TEST(WordPiece, GivesTheIdsOfThePackage) {
  std::ifstream file(ZRT_SOURCE_DIR "/tests_cpp/tokenizer/data/wordpiece.json");
  ASSERT_TRUE(file);
  const auto data = nlohmann::json::parse(file);
  SmallVocab vocab;
  for (const std::string token : data["vocabulary"]) {
    const bool is_name = token.starts_with('[') && token.ends_with(']') && token != "[" && token != "]";
    const bool goes_on = token.starts_with("##");
    vocab.add(is_name ? token : goes_on ? token.substr(2) : "\u2581" + token, is_name ? 3 : 1);
  }
  const Tokenizer t = wordpiece(vocab);
  ASSERT_GT(data["cases"].size(), 300u);
  for (const auto& c : data["cases"]) EXPECT_EQ(ids_of(t, c[0].get<std::string>(), true), c[1].get<TokenIds>()) << c[0];
}

}  // namespace
}  // namespace zinc_rt
