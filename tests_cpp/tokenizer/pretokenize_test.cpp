#include "tokenizer/pretokenize.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests_cpp/base/random_text.h"

namespace zinc_rt {
namespace {

class Collect final : public PieceSink {
 public:
  bool piece(std::string_view text) override {
    pieces.emplace_back(text);
    return true;
  }
  std::vector<std::string> pieces;
};

std::vector<std::string> split(const char* pre, std::string_view text) {
  const auto rule = find_pre_rule(pre);
  if (!rule) return {rule.error().message};
  const auto pretokenizer = Pretokenizer::create(**rule);
  if (!pretokenizer) return {pretokenizer.error().message};
  Collect sink;
  const auto whole = pretokenizer->split(text, sink);
  if (!whole) return {whole.error().message};
  return sink.pieces;
}

using Pieces = std::vector<std::string>;

TEST(Pretokenize, Words) {
  EXPECT_EQ(split("gpt-2", "I'm 123  ok!!\n\n x"), Pieces({"I", "'m", " 123", " ", " ok", "!!", "\n\n", " x"}));
  EXPECT_EQ(split("smollm", "a 12 b"), Pieces({"a", " ", "1", "2", " b"}));
  EXPECT_EQ(split("llama-bpe", "I'M 12345 ok.\n\n x"), Pieces({"I", "'M", " ", "123", "45", " ok", ".\n\n", " x"}));
  EXPECT_EQ(split("qwen2", "x=12 (a)"), Pieces({"x", "=", "1", "2", " (", "a", ")"}));
  EXPECT_EQ(split("default", "1234 a+b"), Pieces({"123", "4", " a", "+", "b"}));
  EXPECT_EQ(split("gpt-4o", "HelloWorld'S 1234/\n"), Pieces({"Hello", "World'S", " ", "123", "4", "/\n"}));
  EXPECT_EQ(split("tekken", "ABc 12"), Pieces({"ABc", " ", "1", "2"}));
  EXPECT_EQ(split("deepseek-v3", "ab1234\u4e2d\u6587.x"), Pieces({"ab", "123", "4", "\u4e2d\u6587", ".x"}));
  EXPECT_EQ(split("deepseek-llm", "ab 12\n"), Pieces({"ab", " ", "12", "\n"}));
  EXPECT_EQ(split("kimi-k2", "abc\u4e2d\u6587d"), Pieces({"abc", "\u4e2d\u6587", "d"}));
  EXPECT_EQ(split("tiny_aya", "1234567 123456 1234a"),
            Pieces({"1", "234", "567", " ", "123", "456", " ", "123", "4", "a"}));
}

TEST(Pretokenize, MarksStayWithTheirLettersOnlyInQwen35) {
  EXPECT_EQ(split("qwen2", "e\u0301x"), Pieces({"e", "\u0301x"}));
  EXPECT_EQ(split("qwen35", "e\u0301x"), Pieces({"e\u0301x"}));
}

TEST(Pretokenize, WhiteSpaceIsUnicodes) {
  EXPECT_EQ(split("gpt-2", "a\u00a0\u3000b"), Pieces({"a", "\u00a0", "\u3000", "b"}));
  EXPECT_EQ(split("gpt-2", "\u180e!"), Pieces({"\u180e!"})) << "U+180E is no white space since Unicode 6.3";
}

TEST(Pretokenize, BytesThatAreNotUtf8AreAPieceOfTheirOwn) {
  EXPECT_EQ(split("gpt-2", "ab\xFF\xC3 cd\xE2\x82"), Pieces({"ab", "\xFF\xC3", " cd", "\xE2\x82"}));
}

TEST(Pretokenize, EveryRuleCoversEveryText) {
  RandomText random(11);
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) texts.push_back(i % 2 == 0 ? random.utf8(30) : random.bytes(20));
  texts.push_back(std::string(50'000, 'A'));
  texts.push_back(std::string(50'000, ' ') + "x");
  texts.push_back(std::string(50'000, '\n'));
  texts.push_back(std::string(50'000, '7'));
  texts.push_back(std::string(50'000, '7') + "a");
  texts.push_back(std::string(50'000, ' ') + "\u4e2d");
  texts.push_back(std::string(50'000, '!') + " ");
  std::string marks;
  for (int i = 0; i < 50'000; ++i) marks += "\u0e01\u0e48";
  texts.push_back(marks);
  std::set<std::string_view> names;
  for (const PreRule& rule : pre_rules()) {
    SCOPED_TRACE(rule.name);
    EXPECT_TRUE(names.insert(rule.name).second);
    auto pretokenizer = Pretokenizer::create(rule);
    ASSERT_TRUE(pretokenizer) << pretokenizer.error().message;
    for (const std::string& text : texts) {
      Collect sink;
      const auto status = pretokenizer->split(text, sink);
      ASSERT_TRUE(status) << status.error().message;
      std::string joined;
      for (const std::string& piece : sink.pieces) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

// What converters write into files of the families that the engine runs or will run, with a text on which the families
// differ: digits, case, marks and line ends.
TEST(Pretokenize, NamesThatFilesOfTheFamiliesCarry) {
  const std::pair<const char*, std::vector<std::string>> kPieces[] = {
      {"llama-bpe", {"I", "'LL", " buy", " ", "123", "4", " iPhoneX", "...\n\n"}},               // Llama 3
      {"smollm", {"I", "'", "LL", " buy", " ", "1", "2", "3", "4", " iPhoneX", "...", "\n\n"}},  // SmolLM2
      {"smaug-bpe", {"I", "'LL", " buy", " ", "123", "4", " iPhoneX", "...\n\n"}},               // SmolLM3
      {"qwen2", {"I", "'LL", " buy", " ", "1", "2", "3", "4", " iPhoneX", "...\n\n"}},           // Qwen 2, 2.5, 3
      {"qwen35", {"I", "'LL", " buy", " ", "1", "2", "3", "4", " iPhoneX", "...\n\n"}},          // Qwen 3.5, 3.6
      {"deepseek-r1-qwen", {"I", "'LL", " buy", " ", "1", "2", "3", "4", " iPhoneX", "...\n\n"}},
      {"tekken", {"I", "'LL", " buy", " ", "1", "2", "3", "4", " i", "Phone", "X", "...\n\n"}},  // Mistral Nemo
      {"gpt-4o", {"I'LL", " buy", " ", "123", "4", " i", "Phone", "X", "...\n\n"}},              // Phi-4-mini, gpt-oss
      {"phi-2", {"I", "'", "LL", " buy", " 1234", " iPhoneX", "...", "\n\n"}},
      {"dbrx", {"I", "'LL", " buy", " ", "123", "4", " iPhoneX", "...\n\n"}},  // Phi-4, OLMo 2, Granite 4
      {"olmo", {"I", "'", "LL", " buy", " 1234", " iPhoneX", "...", "\n\n"}},
      {"refact", {"I", "'", "LL", " buy", " ", "1", "2", "3", "4", " iPhoneX", "...", "\n\n"}},  // Granite 3
      {"command-r", {"I", "'", "LL", " buy", " ", "1", "2", "3", "4", " iPhoneX", "...", "\n\n"}},
      {"default", {"I", "'", "LL", " buy", " ", "123", "4", " iPhoneX", "...", "\n\n"}},
  };
  for (const auto& [name, pieces] : kPieces) EXPECT_EQ(split(name, "I'LL buy 1234 iPhoneX...\n\n"), pieces) << name;
}

TEST(Pretokenize, UnknownNamesAreRefusedWithTheList) {
  const auto rule = find_pre_rule("nobody");
  ASSERT_FALSE(rule);
  EXPECT_NE(rule.error().message.find("\"nobody\" is not supported; known: default, gpt-2"), std::string::npos);
}

}  // namespace
}  // namespace zinc_rt
