// Which tokens begin and end a text, according to the file's keys and the tokens' names.
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

// Reads the *_token_id keys and adds tokens with well-known names ("<|im_end|>" ...). If the file calls such a token
// user-defined, it becomes a control token in `vocab`, so that text from outside cannot end a turn. A token that the
// file calls normal becomes one only if its name cannot be ordinary text. An id of 0xFFFFFFFF means none. Errors:
// kCorrupt for any other id outside the vocabulary.
Result<TokenRoles> read_token_roles(const gguf::Metadata& metadata, Vocab& vocab);

// Sets bos, eos and unk of BERT's vocabularies. Their files have keys of their own for bos and eos; without keys the
// three are the tokens [CLS], [SEP] and [UNK]. Errors: kNotFound if the file has neither; kCorrupt as above.
Status read_bert_roles(const gguf::Metadata& metadata, const Vocab& vocab, TokenRoles& roles);

}  // namespace zinc_rt
