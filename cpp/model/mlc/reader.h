// Reads an MLC folder (mlc-chat-config.json, ndarray-cache.json and its shards, tokenizer.json) as if it were a GGUF
// file of the same model, so that all other code sees GGUF's keys, tensor names, shapes and row orders. 4-bit weights
// become Q4_0 blocks of exactly the same values, norms become f32, and unquantized matrices stay f16 or f32.
//
// Everything is checked before it is used: the size and MD5 of each shard, the shape and type of every parameter
// against the config, and that no parameter is missing or unknown. If the files do not belong to the same version, the
// error names the shard and both numbers.
// Thread rule: pure functions; they start their own threads to hash and repack.
#pragma once

#include <string>

#include "model/weights.h"

namespace zinc_rt::mlc {

// Returns whether `path` is a folder. A folder is taken for an MLC model, because every other supported model format is
// a file.
bool is_folder(const std::string& path);

// Reads the folder's tensors into new memory and closes the shards. The memory is about as large as the shards.
Result<Weights::Source> read_folder(const std::string& path);
// Returns only the metadata. No shard is opened.
Result<gguf::Metadata> read_metadata(const std::string& path);

}  // namespace zinc_rt::mlc
