// The types of KV cache, one table row each, with what their cells require of a model. A new type is a row here plus
// kernels that write and read its cells (docs/porting.md).
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
  DType k, v;             // of the cells of keys and of values
  bool has_coarse_keys;   // so coarse that small models and those with key biases lose much of their quality
};

std::span<const KvType> kv_types();
// Null if no type has this name, or these cells.
const KvType* find_kv_type(std::string_view name);
const KvType* find_kv_type(DType k, DType v);
std::vector<std::string> kv_type_names();  // in the order of the table

// How cells lie in a page of 16 tokens.
enum class KvLayout : std::uint8_t {
  kTokens,    // one token after another, a row of values each
  kRotated,   // kernels/common/kv_rotate.h
  kIntegers,  // kernels/common/kv_integer.h
};

// The properties of all types with such cells.
struct KvCell {
  DType dtype;
  KvLayout layout;
  std::uint32_t head_extra;    // elements of a row that a head has beside its values
  std::string_view head_dims;  // which are served, for messages
  bool (*serves)(std::uint32_t head_dim);
};
const KvCell* find_kv_cell(DType dtype);  // nullptr when no cache has such cells
// Elements of a token's row.
inline std::uint64_t kv_row(const KvCell& cell, std::uint64_t n_heads, std::uint64_t head_dim) {
  return n_heads * (head_dim + cell.head_extra);
}

}  // namespace zinc_rt
