#include "tokenizer/pre_choice.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zinc_rt {
namespace {

constexpr std::string_view kKey = "tokenizer.ggml.pre", kUnknown = "default";

// Names a token that identifies a vocabulary. All published vocabularies of the architecture with this token at this id
// use the rule `pre`; the architecture's other vocabularies lack the token.
struct Certain {
  std::string_view architecture, token;
  TokenId id;
  std::string_view pre;
};
constexpr Certain kCertain[] = {
    {"llama", "<|begin_of_text|>", 128000, "llama-bpe"}, {"qwen2", "<|endoftext|>", 151643, "qwen2"},
    {"qwen3", "<|endoftext|>", 151643, "qwen2"},         {"qwen3moe", "<|endoftext|>", 151643, "qwen2"},
    {"qwen3next", "<|endoftext|>", 151643, "qwen2"},
};

}  // namespace

Result<const PreRule*> choose_pre_rule(const gguf::Metadata& metadata, const Vocab& vocab) {
  ZRT_TRY(const std::string_view said, metadata.get_string_or(kKey, ""));
  if (!said.empty() && said != kUnknown) return find_pre_rule(said);
  ZRT_TRY(const std::string_view architecture, metadata.get_string_or("general.architecture", ""));
  const auto row = std::ranges::find_if(kCertain, [&](const Certain& one) {
    return one.architecture == architecture && vocab.contains(one.id) && vocab.text(one.id) == one.token;
  });
  const bool is_certain = row != std::end(kCertain);
  const std::string_view pre = is_certain ? row->pre : kUnknown;
  log().warn("{}: key {} is {}; {} is taken{}", metadata.place().empty() ? "the vocabulary" : metadata.place(), kKey,
             said.empty() ? "missing" : "\"default\"", pre,
             is_certain ? ", which this vocabulary is known for"
                        : ". If the model was trained with another one, its answers are worse than they could be: make "
                          "the file anew");
  return find_pre_rule(pre);
}

}  // namespace zinc_rt
