// The types of the KV cache, a table row each, and what each requires of a model. A cell is the stored keys or values
// of one token. To add a type, add a row here and kernels that write and read its cells (docs/porting.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace zinc_rt {

struct KvType {
  std::string_view name;  // the value of kv_dtype
  DType k, v;             // element types of the keys and of the values
  bool has_coarse_keys;   // keys have so few bits that small models, and models with key biases, lose much quality
};

std::span<const KvType> kv_types();
// Both return nullptr if there is no such type.
const KvType* find_kv_type(std::string_view name);
const KvType* find_kv_type(DType k, DType v);
std::vector<std::string> kv_type_names();  // in the order of the table

// How a page of 16 tokens is laid out.
enum class KvLayout : std::uint8_t {
  kTokens,    // a row of values per token, one token after another
  kRotated,   // kernels/common/kv_rotate.h
  kIntegers,  // kernels/common/kv_integer.h
};

// The properties of one element type of the cache.
struct KvCell {
  DType dtype;
  KvLayout layout;
  std::uint32_t head_extra;    // elements per head in a token's row beyond head_dim
  std::string_view head_dims;  // supported head dimensions in words, for messages
  bool (*serves)(std::uint32_t head_dim);
};
const KvCell* find_kv_cell(DType dtype);  // nullptr if the cache cannot have this type
// The number of elements in the row of one token.
inline std::uint64_t kv_row(const KvCell& cell, std::uint64_t n_heads, std::uint64_t head_dim) {
  return n_heads * (head_dim + cell.head_extra);
}

}  // namespace zinc_rt
