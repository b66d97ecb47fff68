// Which tokens begin and end a text, and what the file's keys and the tokens' own names say of it.
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
  std::vector<TokenId> end_of_generation;  // ascending
};

// Reads the *_token_id keys and adds tokens with well-known names ("<|im_end|>" ...). Such a token that the file calls
// user-defined is made a control token in `vocab`, so that text from outside cannot end a turn; one that the file calls
// normal too, if its name cannot be ordinary text. An id of 0xFFFFFFFF means none. Fails with kCorrupt for any other id
// outside the vocabulary.
Result<TokenRoles> read_token_roles(const gguf::Metadata& metadata, Vocab& vocab);

// Sets bos, eos and unk of BERT's vocabularies, whose files have keys of their own for the first two; without keys they
// are the tokens [CLS], [SEP] and [UNK]. Errors: kNotFound where there is neither; kCorrupt as above.
Status read_bert_roles(const gguf::Metadata& metadata, const Vocab& vocab, TokenRoles& roles);

}  // namespace zinc_rt
