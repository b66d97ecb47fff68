// Fetches the names, sizes and hashes of a model's files from Hugging Face or Ollama's registry.
// Thread rule: any thread.
#pragma once

#include <string>
#include <vector>

#include "hub/download.h"
#include "hub/reference.h"

namespace zinc_rt::hub {

struct NamedFile {
  std::string name;  // name in the models folder, ending in .gguf
  RemoteFile remote;
};

// Returns the model's file, or all files of a split model in order. Errors: those of fetch_text(); kNotFound if the
// repository has no such GGUF file, with the repository's files in the message.
Result<std::vector<NamedFile>> files_of(const Reference& reference);

}  // namespace zinc_rt::hub
