// Defines the types of the KV cache, one table row each, and what each requires of a model. A cell holds the keys or
// the values of one token. To add a type, add a row here and kernels that write and read its cells (docs/porting.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace zinc_rt {

struct KvType {
  std::string_view name;  // the value of the option kv_dtype
  DType k, v;             // element types of the keys and of the values
  // True if keys have so few bits that small models, and models with biases on keys, lose much quality.
  bool has_coarse_keys;
};

std::span<const KvType> kv_types();
// Find a type by its name or by the types of its elements. Both return nullptr if there is no such type.
const KvType* find_kv_type(std::string_view name);
const KvType* find_kv_type(DType k, DType v);
std::vector<std::string> kv_type_names();  // returns all names, in the order of the table

// Says how the cells of a page of 16 tokens are laid out in memory.
enum class KvLayout : std::uint8_t {
  kTokens,    // one row of values per token, one token after another
  kRotated,   // each head is rotated before it is quantized (kernels/common/kv_rotate.h)
  kIntegers,  // integers with a scale per head (kernels/common/kv_integer.h)
};

// Describes one element type of the cache. Kernels and checks of a model's shape use it.
struct KvCell {
  DType dtype;
  KvLayout layout;
  std::uint32_t head_extra;    // elements per head in a token's row in addition to head_dim
  std::string_view head_dims;  // the supported head dimensions in words, for messages
  bool (*serves)(std::uint32_t head_dim);
};
const KvCell* find_kv_cell(DType dtype);  // returns nullptr if no type of the KV cache has such elements
// Returns the number of elements in the row of one token.
inline std::uint64_t kv_row(const KvCell& cell, std::uint64_t n_heads, std::uint64_t head_dim) {
  return n_heads * (head_dim + cell.head_extra);
}

}  // namespace zinc_rt
