// The names of models to download:
//   smollm2, qwen3:0.6b                 a name of the catalogue
//   hf:OWNER/REPO[:QUANT or FILE.gguf]  Hugging Face; also hf.co/..., https://huggingface.co/OWNER/REPO, or OWNER/REPO
//   ollama:NAME[:TAG]                   Ollama's registry; also ollama.com/library/NAME, ollama.com/USER/NAME
//   http://..., https://...             a file
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt::hub {

struct Reference {
  enum Kind : std::uint8_t { kUrl, kHuggingFace, kOllama } kind = kUrl;
  std::string repository = {};  // OWNER/REPO; of kUrl the whole URL
  std::string tag = {};         // quant, file or tag; empty: the default
  std::string alias = {};       // the name of the catalogue, if it was one

  std::string text() const;  // in its first form above
};

// Errors: kInvalidArgument with the accepted forms; kNotFound for a name that the catalogue does not have, with a near
// one.
Result<Reference> parse_reference(std::string_view text);

}  // namespace zinc_rt::hub
