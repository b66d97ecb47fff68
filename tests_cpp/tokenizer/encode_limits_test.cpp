// What ends an encoding early, and what can be said of a text's tokens before it is encoded.
#include <gtest/gtest.h>

#include <string>

#include "tests_cpp/base/random_text.h"
#include "tests_cpp/tokenizer/small_vocab.h"
#include "tests_cpp/tokenizer/tokenizer_fixture.h"

namespace zinc_rt {
namespace {

std::vector<Tokenizer> all_kinds() {
  std::vector<Tokenizer> out = {*Tokenizer::from_metadata(SmallVocab::byte_level().metadata("gpt2")),
                                *Tokenizer::from_metadata(SmallVocab::spm().metadata("llama"))};
  for (const char* name : {"vocab/ggml-vocab-qwen2.gguf", "vocab/ggml-vocab-phi-3.gguf", "models/gemma4_moe-f16.gguf"})
    if (auto tokenizer = open_tokenizer(shared_fixtures() / name)) out.push_back(*tokenizer);
  return out;
}

TEST(EncodeLimits, EndsWhereThereAreTooMany) {
  for (const Tokenizer& tokenizer : all_kinds())
    for (const std::string& text : {std::string(100'000, ' '), std::string(100'000, 'q'), std::string(100'000, '\n')}) {
      const auto ids = ids_of(tokenizer, text);
      EXPECT_EQ(tokenizer.encode(text, false, false, {.max_tokens = ids.size(), .cancel = {}}).value(), ids);
      const auto more = tokenizer.encode(text, false, false, {.max_tokens = ids.size() - 1, .cancel = {}});
      ASSERT_FALSE(more);
      EXPECT_EQ(more.error().code, StatusCode::kInvalidArgument);
      EXPECT_NE(more.error().message.find("100000 bytes"), std::string::npos) << more.error().message;
      EXPECT_NE(more.error().message.find(std::to_string(ids.size() - 1)), std::string::npos) << more.error().message;
    }
}

TEST(EncodeLimits, EndsWhenCancelled) {
  std::stop_source source;
  source.request_stop();
  for (const Tokenizer& tokenizer : all_kinds())
    for (const std::string& text : {std::string(100'000, ' '), std::string("hello <s> hello")}) {
      const auto ids = tokenizer.encode(text, true, true, {.cancel = source.get_token()});
      ASSERT_FALSE(ids);
      EXPECT_EQ(ids.error().code, StatusCode::kCancelled);
    }
}

TEST(EncodeLimits, LeastTokensHoldsForEveryText) {
  RandomText random(21);
  for (const Tokenizer& tokenizer : all_kinds()) {
    for (int i = 0; i < 300; ++i) {
      std::string text = i % 2 == 0 ? random.utf8(1 + random.below(60)) : random.bytes(60);
      if (i % 3 == 0) text += std::string(random.below(4000), " \n\ta<"[random.below(5)]);
      for (int n = 0; n < 4; ++n)
        text += tokenizer.token_text(
            static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(tokenizer.n_vocab()))));
      for (const bool special : {true, false})
        ASSERT_LE(tokenizer.least_tokens(text), ids_of(tokenizer, text, false, special).size()) << text;
    }
    EXPECT_GT(tokenizer.least_tokens(std::string(1 << 20, 'a')), 1000u);
  }
}

TEST(EncodeLimits, LeastTokensWhereTextMayVanish) {
  // A byte without a token is left out of the encoding, and of the count.
  auto vocab = SmallVocab::byte_level();
  vocab.tokens['q'] = "unused";
  const auto without_q = *Tokenizer::from_metadata(vocab.metadata("gpt2"));
  EXPECT_EQ(without_q.least_tokens(std::string(1000, 'q')), 0u);
  EXPECT_EQ(ids_of(without_q, std::string(1000, 'q')).size(), 0u);
  EXPECT_GE(without_q.least_tokens(std::string(1000, 'a')), 100u);
  // Space that is collapsed, or swallowed by a special token, does not count.
  auto collapsing = SmallVocab::spm();
  collapsing.set("remove_extra_whitespaces", true);
  EXPECT_EQ(Tokenizer::from_metadata(collapsing.metadata("llama"))->least_tokens(std::string(1000, ' ')), 0u);
  const auto phi = open_tokenizer(shared_fixtures() / "vocab/ggml-vocab-phi-3.gguf");
  if (!phi) return;
  const std::string text = "<|end|>" + std::string(4000, ' ');
  EXPECT_LE(phi->least_tokens(text), ids_of(*phi, text, false, true).size());
}

}  // namespace
}  // namespace zinc_rt
