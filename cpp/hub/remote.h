// Finds the files that a reference stands for: asks the site for names, sizes and hashes.
// Thread rule: any thread.
#pragma once

#include <string>
#include <vector>

#include "hub/download.h"
#include "hub/reference.h"

namespace zinc_rt::hub {

struct NamedFile {
  std::string name;  // as it is stored, ending with .gguf
  RemoteFile remote;
};

// One file, or all files of a split model in order. Errors: those of fetch_text(); kNotFound if the repository has no
// such GGUF file, with those that it has.
Result<std::vector<NamedFile>> files_of(const Reference& reference);

}  // namespace zinc_rt::hub
