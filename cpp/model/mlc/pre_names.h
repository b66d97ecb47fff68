// How byte-level vocabularies split text before merging: a table of GGUF's names (tokenizer.ggml.pre) and the
// equivalent pre_tokenizer objects of tokenizer.json.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "model/mlc/json.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

struct PreRow {
  std::string_view name;   // the value of tokenizer.ggml.pre
  std::string_view regex;  // of a Split step before ByteLevel; empty: ByteLevel's own regex is used
  bool digits_alone;       // there is a Digits step before ByteLevel
  bool whole_words;        // ignore_merges: a word that is a token is not split and merged
  bool add_bos;            // the default if no key says whether BOS is added
};

// Both return kUnavailable for a name or an object that is not in the table.
Result<const PreRow*> pre_of_name(std::string_view name);
Result<const PreRow*> pre_of_json(const Json* pre_tokenizer, const std::string& place);
Json json_of_pre(const PreRow& row);

}  // namespace zinc_rt::mlc
