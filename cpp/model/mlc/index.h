// Reads ndarray-cache.json (tensor-cache.json in newer folders). The index says which shard file contains each
// parameter, and where:
//
//   {"metadata": {...}, "records": [{"dataPath": "params_shard_0.bin", "format": "raw-shard", "nbytes": N, "md5sum": H,
//     "records": [{"name": S, "shape": [rows, columns], "dtype": "uint32", "format": "f32-to-bf16", "nbytes": N,
//                  "byteOffset": N}, ...]}, ...]}
//
// A float32 record of the format f32-to-bf16 is stored as bf16. Every other record is stored as its dtype says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

enum class ElementType : std::uint8_t { kU32, kF16, kF32, kBF16 };  // the type of elements in the shard file
std::string_view to_string(ElementType type);

struct Record {
  std::string name;
  std::vector<std::uint64_t> shape;  // 1 to 4 dimensions; elements along the last dimension are contiguous
  ElementType type = ElementType::kF16;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;
  std::uint64_t n_bytes = 0;  // size in the shard file, computed from shape and type, not read from the index
};

struct Shard {
  std::string file;  // name of the shard file, without a folder
  std::uint64_t n_bytes = 0;
  std::string md5;  // 32 lower-case hexadecimal digits; empty if the index has none
};

struct Index {
  std::vector<Shard> shards;
  std::vector<Record> records;  // Names are unique. Each record lies inside its shard, and no two records overlap.
};

// Parses the index and checks it. `place` is the file name for messages. Errors: kCorrupt or kNotFound, naming the
// record and both numbers.
Result<Index> parse_index(std::string_view text, const std::string& place);

}  // namespace zinc_rt::mlc
