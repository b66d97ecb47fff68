// Defines the parts of which a Tokenizer consists. Only tokenizer*.cpp may include this file.
// Thread rule: immutable after creation.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/spm.h"
#include "tokenizer/token_roles.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocab.h"

namespace zinc_rt {

inline constexpr std::string_view kSpaceMark = "\u2581";  // how SPM vocabularies write a space

enum class TokenizerModel : std::uint8_t { kGpt2, kLlama, kGemma4, kBert };

struct Tokenizer::Parts {
  TokenizerModel model = TokenizerModel::kGpt2;
  std::string model_name;
  const PreRule* pre_rule = nullptr;  // set only for kGpt2
  Vocab vocab;
  TokenRoles roles;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  bool remove_extra_whitespaces = false;

  SpecialTokens special_tokens;
  std::optional<Pretokenizer> pretokenizer;  // set for kGpt2
  std::optional<Bpe> bpe;                    // set for kGpt2 and kGemma4
  std::optional<Spm> spm;                    // set for kLlama

  std::size_t max_token_bytes = 4;   // the most bytes of text that one token represents
  std::bitset<256> always_in_token;  // byte values that are never lost when a text is encoded

  std::string bytes;  // the bytes that each token adds to decoded text, back to back
  // Where each token's bytes begin and end; one element more than there are tokens.
  std::vector<std::uint64_t> byte_ends;

  std::string_view bytes_of(TokenId id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(bytes).substr(byte_ends[i], byte_ends[i + 1] - byte_ends[i]);
  }
};

}  // namespace zinc_rt
