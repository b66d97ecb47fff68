// Asks the site of a reference for the names, sizes and hashes of the model's files.
// Thread rule: any thread.
#pragma once

#include <string>
#include <vector>

#include "hub/download.h"
#include "hub/reference.h"

namespace zinc_rt::hub {

struct NamedFile {
  std::string name;  // the name in the models folder, ending in .gguf
  RemoteFile remote;
};

// Returns the model's file, or all files of a split model in order. Errors: those of fetch_text(); kNotFound if the
// repository has no such GGUF file; the message lists those that it has.
Result<std::vector<NamedFile>> files_of(const Reference& reference);

}  // namespace zinc_rt::hub
