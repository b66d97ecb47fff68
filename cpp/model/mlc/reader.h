// Reads an MLC folder (mlc-chat-config.json, ndarray-cache.json and its shards, tokenizer.json) as if it were a GGUF
// file of the same model: the same keys, tensor names, shapes and row orders. 4-bit weights become Q4_0 blocks of
// exactly the same values, norms become f32, and unquantized matrices stay f16 or f32.
//
// Everything is checked before it is used: each shard's size and MD5, every parameter's shape and type against the
// config, and that no parameter is missing or unknown. If the files do not belong to the same version, the error names
// the shard and both numbers. Thread rule: pure functions; they start threads of their own for hashing and repacking.
#pragma once

#include <string>

#include "model/weights.h"

namespace zinc_rt::mlc {

// Returns whether `path` is a folder. No other model format is a folder.
bool is_folder(const std::string& path);

// Copies the tensors and closes the shards. This takes as much memory as the shards are large.
Result<Weights::Source> read_folder(const std::string& path);
// Reads only the metadata; no shard is opened.
Result<gguf::Metadata> read_metadata(const std::string& path);

}  // namespace zinc_rt::mlc
