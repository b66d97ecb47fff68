// Converts GGUF's tokenizer.* keys to tokenizer.json and tokenizer_config.json, for the writer of MLC folders. If
// tokenizer_import reads the two files back, every text is tokenized to the same ids. Errors: kUnavailable, naming what
// the files cannot express.
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/gguf/metadata.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

struct TokenizerTexts {
  std::string tokenizer;  // text of tokenizer.json
  std::string config;     // text of tokenizer_config.json
  bool byte_level = false;
  bool space_prefix = false;
  std::uint64_t n_tokens = 0;  // number of tokens, without the padding rows at the end
  std::optional<std::uint64_t> bos_id, eos_id, eot_id, pad_id;
};

Result<TokenizerTexts> export_tokenizer(const gguf::Metadata& metadata);

}  // namespace zinc_rt::mlc
