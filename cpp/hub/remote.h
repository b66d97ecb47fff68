// Asks Hugging Face or Ollama's registry for the names, sizes and hashes of a model's files.
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
// repository has no such GGUF file, with the files that it has in the message.
Result<std::vector<NamedFile>> files_of(const Reference& reference);

}  // namespace zinc_rt::hub
