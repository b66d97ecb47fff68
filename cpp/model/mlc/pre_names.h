// How byte-level vocabularies cut text before merging: a table of GGUF's names (tokenizer.ggml.pre) and the equivalent
// pre_tokenizer objects of tokenizer.json.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "model/mlc/json.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

struct PreRow {
  std::string_view name;   // what tokenizer.ggml.pre says
  std::string_view regex;  // of a Split before the bytes; empty: ByteLevel's own
  bool digits_alone;       // a Digits step before the bytes
  bool whole_words;        // ignore_merges: a word that is a token is taken as it stands
  bool add_bos;            // where no key says so
};

// Both fail with kUnavailable for what is not in the table.
Result<const PreRow*> pre_of_name(std::string_view name);
Result<const PreRow*> pre_of_json(const Json* pre_tokenizer, const std::string& place);
Json json_of_pre(const PreRow& row);

}  // namespace zinc_rt::mlc
