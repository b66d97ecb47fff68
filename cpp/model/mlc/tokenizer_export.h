// Converts GGUF's tokenizer.* keys to tokenizer.json and tokenizer_config.json. tokenizer_import reads these files
// back; the result tokenizes every text to the same ids. Errors: kUnavailable, naming what these files cannot express.
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/gguf/metadata.h"
#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

struct TokenizerTexts {
  std::string tokenizer;  // of tokenizer.json
  std::string config;     // of tokenizer_config.json
  bool byte_level = false;
  bool space_prefix = false;
  std::uint64_t n_tokens = 0;  // without padding
  std::optional<std::uint64_t> bos_id, eos_id, eot_id, pad_id;
};

Result<TokenizerTexts> export_tokenizer(const gguf::Metadata& metadata);

}  // namespace zinc_rt::mlc
