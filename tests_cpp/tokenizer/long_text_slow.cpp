// 10 MB of words, and 1 MB of what makes careless tokenizers quadratic: all come back as they went in. The times are
// printed, not asserted; a quadratic algorithm would run into the test's own limit.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "tests_cpp/base/random_text.h"
#include "tests_cpp/tokenizer/small_vocab.h"
#include "tests_cpp/tokenizer/tokenizer_fixture.h"
#include "tokenizer/detokenizer.h"

namespace zinc_rt {
namespace {

// Words of a vocabulary of 50,000, the k-th with a frequency of about 1/k, and some punctuation.
std::string words(std::size_t n_bytes) {
  RandomText random(5);
  std::vector<std::string> lexicon;
  for (int i = 0; i < 50'000; ++i) {
    std::string word;
    for (std::uint32_t n = 2 + random.below(8); n > 0; --n)
      word.push_back("eeetttaaooiinnsshrrdlucmfwygpbvk"[random.below(32)]);
    lexicon.push_back(word);
  }
  std::string text;
  while (text.size() < n_bytes) {
    const double u = random.below(1u << 30) / double(1u << 30);
    text += lexicon[static_cast<std::size_t>(std::exp(u * std::log(double(lexicon.size())))) - 1];
    const std::uint32_t end = random.below(40);
    text += end == 0 ? ".\n" : end == 1 ? ", " : end == 2 ? " 1234 " : " ";
  }
  return text;
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ids = ids_of(tokenizer, text, true, true);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(tokenizer.decode(ids, true).value(), text);
  return taken.count();
}

TEST(TokenizerLongText, TenMegabytesAndOneMegabyteRuns) {
#ifdef ZRT_SANITIZED
  GTEST_SKIP() << "sanitized build";
#endif
  std::vector<std::pair<std::string, Tokenizer>> tokenizers = {
      {"small gpt2", *Tokenizer::from_metadata(SmallVocab::byte_level().metadata("gpt2"))},
      {"small llama", *Tokenizer::from_metadata(SmallVocab::spm().metadata("llama"))}};
  for (const auto& path : {demo_model(), shared_fixtures() / "vocab" / "ggml-vocab-qwen2.gguf",
                           shared_fixtures() / "vocab" / "ggml-vocab-phi-3.gguf"}) {
    if (auto tokenizer = open_tokenizer(path)) tokenizers.emplace_back(path.filename().string(), *tokenizer);
  }
  const std::string text = words(10'000'000);
  const std::pair<const char*, std::string> runs[] = {{"a", std::string(1'000'000, 'a')},
                                                      {"A", std::string(1'000'000, 'A')},
                                                      {"space", std::string(1'000'000, ' ')},
                                                      {"line feed", std::string(1'000'000, '\n')},
                                                      {"digit", std::string(1'000'000, '7')}};
  for (const auto& [name, tokenizer] : tokenizers) {
    const double seconds = seconds_to_encode(tokenizer, text);
    std::printf("%-34s 10 MB of words: %.3f s", name.c_str(), seconds);
    for (const auto& [what, run] : runs) {
      const double run_seconds = seconds_to_encode(tokenizer, run);
      std::printf(", 1 MB of %s: %.3f s", what, run_seconds);
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace zinc_rt
