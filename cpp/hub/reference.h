// A Reference names a model to download. Users write it in one of these forms:
//   smollm2, qwen3:0.6b                 a name in catalogue.cpp
//   hf:OWNER/REPO[:QUANT or FILE.gguf]  Hugging Face; also hf.co/..., https://huggingface.co/OWNER/REPO, or OWNER/REPO
//   ollama:NAME[:TAG]                   Ollama's registry; also ollama.com/library/NAME, ollama.com/USER/NAME
//   http://..., https://...             the URL of a file
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt::hub {

struct Reference {
  enum Kind : std::uint8_t { kUrl, kHuggingFace, kOllama } kind = kUrl;
  std::string repository = {};  // OWNER/REPO; for kUrl the whole URL
  std::string tag = {};         // quant, file name or tag; empty for the default
  std::string alias = {};       // name in the catalogue, if the user gave one

  std::string text() const;  // the reference in the first form of its kind in the list above
};

// Parses what a user wrote. Errors: kInvalidArgument with the accepted forms; kNotFound for a name that is not in the
// catalogue, with a similar name in the message.
Result<Reference> parse_reference(std::string_view text);

}  // namespace zinc_rt::hub
