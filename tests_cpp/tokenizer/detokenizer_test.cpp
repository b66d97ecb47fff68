#include "tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include "tests_cpp/tokenizer/small_vocab.h"

namespace zinc_rt {
namespace {

Tokenizer byte_level() {
  return *Tokenizer::from_metadata(SmallVocab::byte_level().metadata("gpt2"));
}
Tokenizer spm() {
  return *Tokenizer::from_metadata(SmallVocab::spm().metadata("llama"));
}

TEST(Detokenizer, HoldsACharacterUntilItIsWhole) {
  Detokenizer stream(byte_level());
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x99), "");
  EXPECT_EQ(stream.push(0x82), "\U0001F642");
  EXPECT_EQ(stream.push(260), " hello");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Detokenizer, BrokenBytesComeAtOnce) {
  Detokenizer stream(byte_level());
  EXPECT_EQ(stream.push(0xFF), "\uFFFD");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push('a'), "\uFFFDa");
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(0xE2), "\uFFFD");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push('b'), "b");
}

TEST(Detokenizer, AnIdOutsideIsVisible) {
  Detokenizer stream(byte_level());
  EXPECT_EQ(stream.push(0xE2), "");
  EXPECT_EQ(stream.push(100'000), "\uFFFD\uFFFD");
  EXPECT_EQ(stream.push(-1), "\uFFFD");
}

TEST(Detokenizer, SpecialTokensOnRequest) {
  Detokenizer hidden(byte_level());
  EXPECT_EQ(hidden.push(262), "");
  Detokenizer shown(byte_level(), false);
  EXPECT_EQ(shown.push(262), "</s>");
}

TEST(Detokenizer, TheFirstSpaceDependsOnWhatCameBefore) {
  const Tokenizer t = spm();
  const int hello = *t.find("\u2581hello");
  Detokenizer start(t);
  EXPECT_EQ(start.push(hello), "hello");
  EXPECT_EQ(start.push(hello), " hello");
  Detokenizer after_special(t, true, 2);
  EXPECT_EQ(after_special.push(hello), "hello");
  Detokenizer after_text(t, true, hello);
  EXPECT_EQ(after_text.push(hello), " hello");
}

}  // namespace
}  // namespace zinc_rt
