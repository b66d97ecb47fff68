// Writes a model as an MLC folder of q4f16_1 weights: mlc-chat-config.json, ndarray-cache.json with its shards,
// tokenizer.json, tokenizer_config.json. Q4_0 matrices keep their values; all others are quantized to 4 bits, norms to
// f16. The folder is written under a temporary name and renamed when it is complete. Thread rule: pure function; it
// starts threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "model/weights.h"

namespace zinc_rt::mlc {

struct WriteOptions {
  // Reads the values of one row of a type other than f32. out.size() is a multiple of the type's block. It is called
  // from several threads. The caller passes it because the table of weight formats belongs to the kernels, which this
  // module must not depend on.
  std::function<void(DType dtype, const std::byte* row, std::span<float> out)> dequantize;
  // Called with the bytes of the source's tensors that are written so far, and of all. An error stops the writing and
  // leaves no folder.
  std::function<Status(std::uint64_t done, std::uint64_t total)> on_progress;
};

struct Written {
  std::uint64_t n_bytes = 0;  // of all files
  std::uint64_t n_shards = 0;
  std::uint64_t n_exact = 0;      // matrices whose values equal the source's
  std::uint64_t n_quantized = 0;  // matrices that were quantized to 4 bits here
};

// Errors: kInvalidArgument if `folder` exists and is not empty; kUnavailable for what MLC's families or tokenizer files
// cannot express, and for errors of the system; kCorrupt for weights that are not finite numbers.
Result<Written> write_folder(const std::string& folder, const Weights& weights, const WriteOptions& options);

}  // namespace zinc_rt::mlc
