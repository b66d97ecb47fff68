// Writes GGUF v3, little endian: magic "GGUF", version, counts of tensors and keys; the keys; the tensor table; then
// the data of each tensor at a multiple of the alignment (general.alignment, else 32), counted from the padded end of
// the table. The file gets its name only when it is complete. Thread rule: pure function.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "model/gguf/metadata.h"
#include "model/weights.h"
#include "zinc_rt/status.h"

namespace zinc_rt::gguf {

struct WriteOptions {
  // Bytes of tensors written so far. An error stops the writing and leaves no file.
  std::function<Status(std::uint64_t done, std::uint64_t total)> on_progress;
};

// Returns the size of the file. Errors: kInvalidArgument for a tensor type that the format does not have; kUnavailable
// for errors of the system.
Result<std::uint64_t> write_file(const std::string& path, const Metadata& metadata, std::span<const Tensor> tensors,
                                 const WriteOptions& options = {});

}  // namespace zinc_rt::gguf
