// Writes a GGUF v3 file, little endian. The order is: magic "GGUF", version, counts of tensors and keys; the keys; the
// tensor table; the data of the tensors. Each tensor's data starts at a multiple of the alignment (general.alignment,
// or 32 if that key is absent), counted from the padded end of the table. The file gets its final name only when it is
// complete.
// Thread rule: pure function.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "model/gguf/metadata.h"
#include "model/weights.h"
#include "zinc_rt/status.h"

namespace zinc_rt::gguf {

struct WriteOptions {
  // Called while tensors are written, with the bytes written so far and their total. If it returns an error, writing
  // stops and no file is left.
  std::function<Status(std::uint64_t done, std::uint64_t total)> on_progress;
};

// Writes the file and returns its size in bytes. Errors: kInvalidArgument for a tensor type that the format does not
// define; kUnavailable for errors of the system.
Result<std::uint64_t> write_file(const std::string& path, const Metadata& metadata, std::span<const Tensor> tensors,
                                 const WriteOptions& options = {});

}  // namespace zinc_rt::gguf
