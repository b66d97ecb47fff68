// Maps GGUF's names of pre-tokenizers (tokenizer.ggml.pre) to the equivalent pre_tokenizer objects of tokenizer.json. A
// pre-tokenizer defines how a byte-level vocabulary cuts text into words before it merges bytes within each word.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "model/mlc/json.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

struct PreRow {
  std::string_view name;   // value of tokenizer.ggml.pre
  std::string_view regex;  // regex of the Split step before ByteLevel; empty if ByteLevel's own regex is used
  bool digits_alone;       // a Digits step before ByteLevel makes each digit a word
  bool whole_words;        // "ignore_merges": a word that is a token becomes that token without merging
  bool add_bos;            // whether BOS is added if no key says so
};

// Find the row of a GGUF name, or of a pre_tokenizer object. Errors: kUnavailable if the table has no such row.
Result<const PreRow*> pre_of_name(std::string_view name);
Result<const PreRow*> pre_of_json(const Json* pre_tokenizer, const std::string& place);
Json json_of_pre(const PreRow& row);

}  // namespace zinc_rt::mlc
