// Element types of tensors, one table row each. A quantized type stores `block_elems` elements in `block_bytes` bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace zinc_rt {

enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kI32,
  kU32,
  kU8,
  // Quantized activations, which the QUANTIZE op makes (kernels/common/act_q8.h).
  kQ8A32,
  kQ8A256,
  // Cells of the KV cache alone: rotated by heads, of 8 and of 4 bits (kernels/common/kv_rotate.h).
  kR8,
  kR4,
  // Integers of 16 bits with a scale a head (kernels/common/kv_integer.h), which is one more element of a row.
  kI16,
  // kFixed16: 16-bit float weights as integers, with a scale per group (BlockFixed16, kernels/common/quant_blocks.h);
  // made while a model is loaded. The other is the type of the activations that are multiplied by them: two digits per
  // value (kernels/common/act_q8.h).
  kFixed16,
  kQ16A256,
  kCount
};

struct DTypeTraits {
  DType dtype;
  std::string_view name;      // lower case, the name used in file names, IR text and kernel names
  std::uint32_t block_elems;  // elements a block
  std::uint32_t block_bytes;  // bytes a block
  bool is_weight;             // may be a matrix of a model
  DType act;                  // of weights: act_dtype; else kCount
};

const DTypeTraits& traits(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
std::vector<DType> weight_types();  // those that is_weight says
inline std::string_view to_string(DType dtype) {
  return traits(dtype).name;
}

// Bytes of one row of n elements. REQUIRES: n is a multiple of block_elems.
inline std::uint64_t row_bytes(DType dtype, std::uint64_t n) {
  return n / traits(dtype).block_elems * traits(dtype).block_bytes;
}

// Returns the type of activations that a dot with this weight format reads: f32 for float weights, else with a scale
// per 256 values for 256-element blocks and per 32 for 32-element blocks (docs/arithmetic.md, rules 3 and 4). REQUIRES:
// traits(weight).is_weight.
DType act_dtype(DType weight);

}  // namespace zinc_rt
