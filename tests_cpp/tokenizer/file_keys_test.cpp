// What a vocabulary is made of where a file's keys are missing, wrong or of another maker's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "base/log.h"
#include "tests_cpp/tokenizer/small_vocab.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The metadata of a vocabulary in a file of an architecture.
gguf::Metadata in_file(const SmallVocab& vocab, const std::string& model, const std::string& architecture) {
  auto out = vocab.metadata(model);
  EXPECT_TRUE(out.add("general.architecture", {gguf::ValueType::kString, false, architecture}));
  return out;
}

// What the log says while a tokenizer is made.
std::string log_of(const gguf::Metadata& metadata, std::string* pre = nullptr) {
  std::ostringstream text;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text);
  log().sinks().push_back(sink);
  const auto made = Tokenizer::from_metadata(metadata);
  log().sinks().pop_back();
  EXPECT_TRUE(made) << made.error().message;
  if (made && pre != nullptr) *pre = made->pre_tokenizer_name();
  return text.str();
}

// Enough tokens for those whose numbers tell a vocabulary.
SmallVocab large(const std::string& token, std::size_t id) {
  SmallVocab v = SmallVocab::byte_level();
  std::erase_if(v.more, [](const auto& one) { return one.first == "tokenizer.ggml.pre"; });
  while (v.tokens.size() < id) v.add("<filler" + std::to_string(v.tokens.size()) + ">");
  v.add(token, 3);
  return v;
}

struct Pre {
  const char* architecture;
  const char* token;
  std::size_t id;
  const char* said;  // empty: no key
  const char* wanted;
};

TEST(FileKeys, APreTokenizerThatIsNotNamedIsTheCertainOneAndLogged) {
  const Pre rows[] = {{"qwen2", "<|endoftext|>", 151643, "", "qwen2"},
                      {"qwen3moe", "<|endoftext|>", 151643, "default", "qwen2"},
                      {"qwen2", "<|endoftext|>", 100, "", "default"},
                      {"llama", "<|begin_of_text|>", 128000, "", "llama-bpe"},
                      {"llama", "<|begin_of_text|>", 128000, "default", "llama-bpe"},
                      {"llama", "<s>", 128000, "", "default"},
                      {"phi3", "<|endoftext|>", 151643, "", "default"}};
  for (const Pre& row : rows) {
    auto vocab = large(row.token, row.id);
    if (*row.said != 0) vocab.set("pre", std::string(row.said));
    std::string pre;
    const auto text = log_of(in_file(vocab, "gpt2", row.architecture), &pre);
    EXPECT_EQ(pre, row.wanted) << row.architecture << " " << row.token;
    EXPECT_THAT(text, HasSubstr("tokenizer.ggml.pre is " + std::string(*row.said == 0 ? "missing" : "\"default\"")));
    EXPECT_THAT(text, HasSubstr(std::string(row.wanted) + " is taken"));
  }
}

TEST(FileKeys, APreTokenizerThatIsNamedIsTakenSilently) {
  auto vocab = large("<|endoftext|>", 151643);
  vocab.set("pre", std::string("smollm"));
  std::string pre;
  EXPECT_EQ(log_of(in_file(vocab, "gpt2", "qwen2"), &pre), "");
  EXPECT_EQ(pre, "smollm");
  EXPECT_EQ(log_of(in_file(SmallVocab::spm(), "llama", "llama")), "");
}

// Merges in an order that scores contradict.
SmallVocab gemma() {
  SmallVocab v = SmallVocab::spm();
  v.merges = {"l l", "ll o", "h e"};
  v.add("llo", 1, -100);
  return v;
}

TEST(FileKeys, Gemma4IsCutByItsMergesWhateverItsFileCallsIt) {
  const auto pieces = [](const gguf::Metadata& metadata) {
    const auto made = Tokenizer::from_metadata(metadata);
    EXPECT_TRUE(made) << made.error().message;
    std::vector<std::string> out;
    const auto ids = made->encode("hello", false, false);
    for (const auto id : *ids) out.emplace_back(made->token_text(id));
    out.emplace_back(made->model());
    return out;
  };
  EXPECT_THAT(pieces(in_file(gemma(), "gemma4", "gemma4")), ElementsAre("he", "llo", "gemma4"));
  EXPECT_THAT(pieces(in_file(gemma(), "llama", "gemma4")), ElementsAre("he", "llo", "gemma4"));
  auto named = gemma();
  named.set("pre", std::string("gemma4"));
  EXPECT_THAT(pieces(in_file(named, "llama", "other")), ElementsAre("he", "llo", "gemma4"));
  // Gemma 3's merges are a by-product of its scores, which count; without merges there is nothing else.
  EXPECT_THAT(pieces(in_file(gemma(), "llama", "gemma3")), ElementsAre("\u2581hello", "llama"));
  auto without = gemma();
  without.merges.clear();
  EXPECT_THAT(pieces(in_file(without, "llama", "gemma4")), ElementsAre("\u2581hello", "llama"));
}

gguf::Metadata with_ends(SmallVocab vocab, std::vector<std::int64_t> ids) {
  vocab.more.emplace_back("tokenizer.ggml.eos_token_ids", gguf::Value{gguf::ValueType::kI32, true, std::move(ids)});
  return vocab.metadata("gpt2");
}

TEST(FileKeys, AListOfEndsIsRead) {
  const auto made = Tokenizer::from_metadata(with_ends(SmallVocab::byte_level(), {5, 7, -1}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->eos_id(), 262);
  EXPECT_THAT(made->end_of_generation_ids(), ElementsAre(5, 7, 262));
  EXPECT_TRUE(made->is_end_of_generation(7));
  // Without the single key the first of the list is the end.
  auto vocab = SmallVocab::byte_level();
  std::erase_if(vocab.more, [](const auto& one) { return one.first == "tokenizer.ggml.eos_token_id"; });
  const auto listed = Tokenizer::from_metadata(with_ends(vocab, {7, 5}));
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_EQ(listed->eos_id(), 7);
  EXPECT_THAT(listed->end_of_generation_ids(), ElementsAre(5, 7, 262)) << "</s> ends by its name";
  EXPECT_EQ(Tokenizer::from_metadata(with_ends(vocab, {}))->eos_id(), std::nullopt);
  const auto outside = Tokenizer::from_metadata(with_ends(SmallVocab::byte_level(), {5, 263}));
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().message, HasSubstr("eos_token_ids: an id below 263 wanted, 263 there"));
}

TEST(FileKeys, TokensWithoutARowAreLeftOut) {
  auto vocab = SmallVocab::byte_level();
  vocab.add("<image_soft_token>", 3);
  const auto whole = Tokenizer::from_metadata(vocab.metadata("gpt2")),
             cut = Tokenizer::from_metadata(vocab.metadata("gpt2"), 263);
  ASSERT_TRUE(whole && cut);
  EXPECT_THAT(*whole->encode("<image_soft_token>", false, true), ElementsAre(263));
  EXPECT_EQ(cut->n_vocab(), 263u);
  EXPECT_THAT(*cut->encode("<image_soft_token>", false, true), testing::Each(testing::Lt(263)));
}

}  // namespace
}  // namespace zinc_rt
