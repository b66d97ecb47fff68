// Writes a model as an MLC folder with q4f16_1 weights, for `zinc-rt convert`. The folder contains
// mlc-chat-config.json, ndarray-cache.json with its shards, tokenizer.json and tokenizer_config.json. Q4_0 matrices
// keep their values, all other matrices are quantized to 4 bits, and norms become f16. The folder is written under a
// temporary name and renamed when it is complete.
// Thread rule: pure function; it starts its own threads.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "model/weights.h"

namespace zinc_rt::mlc {

struct WriteOptions {
  // Converts one row of a type other than f32 to floats. out.size() is a multiple of the type's block size. Several
  // threads call the function at once. The caller passes it in, because the table of weight formats belongs to the
  // kernels, and this module must not depend on kernels.
  std::function<void(DType dtype, const std::byte* row, std::span<float> out)> dequantize;
  // Called with the number of source tensor bytes that are written so far, and their total. If it returns an error,
  // writing stops and no folder is left.
  std::function<Status(std::uint64_t done, std::uint64_t total)> on_progress;
};

struct Written {
  std::uint64_t n_bytes = 0;  // size of all files that were written
  std::uint64_t n_shards = 0;
  std::uint64_t n_exact = 0;      // matrices whose values equal those of the source
  std::uint64_t n_quantized = 0;  // matrices that write_folder() quantized to 4 bits
};

// Writes the folder. Errors: kInvalidArgument if `folder` exists and is not empty; kUnavailable for what MLC's families
// or tokenizer files cannot express, and for errors of the system; kCorrupt for weights that are not finite numbers.
Result<Written> write_folder(const std::string& folder, const Weights& weights, const WriteOptions& options);

}  // namespace zinc_rt::mlc
