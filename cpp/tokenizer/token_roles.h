// TokenRoles says which tokens begin and end a text, according to the file's keys and the tokens' names.
// Thread rule: plain values.
#pragma once

#include <optional>
#include <vector>

#include "model/gguf/metadata.h"
#include "tokenizer/vocab.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

struct TokenRoles {
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> eot;
  std::optional<TokenId> eom;
  std::optional<TokenId> unk;
  std::optional<TokenId> pad;
  std::vector<TokenId> end_of_generation;  // tokens that end a generation, in ascending order
};

// Reads the *_token_id keys and adds tokens with well-known names, such as "<|im_end|>". If the file calls such a token
// user-defined, it becomes a control token in `vocab`, so that text from a client cannot end a turn. If the file calls
// it normal, it becomes a control token only if its name cannot be ordinary text. An id of 0xFFFFFFFF means that the
// model has no such token. Errors: kCorrupt for any other id outside the vocabulary.
Result<TokenRoles> read_token_roles(const gguf::Metadata& metadata, Vocab& vocab);

// Sets the bos, eos and unk tokens of BERT's vocabularies, whose files use other keys for bos and eos. If the keys are
// absent, the three are the tokens [CLS], [SEP] and [UNK]. Errors: kNotFound if the file has neither; kCorrupt for an
// id outside the vocabulary.
Status read_bert_roles(const gguf::Metadata& metadata, const Vocab& vocab, TokenRoles& roles);

}  // namespace zinc_rt
