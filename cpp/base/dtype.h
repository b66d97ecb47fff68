// DType lists the element types of tensors. Each is a row of the table in dtype.cpp. A quantized type stores blocks of
// `block_elems` elements in `block_bytes` bytes each.
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
  // kQ8A32 and kQ8A256 are types of quantized activations, which the QUANTIZE op writes, with one scale per 32 or 256
  // values (kernels/common/act_q8.h).
  kQ8A32,
  kQ8A256,
  // kR8 and kR4 are used only in the KV cache. Each head's vector is rotated, then stored in 8 or in 4 bits per value
  // (kernels/common/kv_rotate.h).
  kR8,
  kR4,
  // kI16 is used only in the KV cache. A row has 16-bit integers, and one more element per head that is the head's
  // scale (kernels/common/kv_integer.h).
  kI16,
  // kFixed16 stores F16 or BF16 weights as 16-bit integers, with one scale per 256 of them (BlockFixed16,
  // kernels/common/quant_blocks.h). They are computed while a model is loaded; no file has them. kQ16A256 stores the
  // activations that are multiplied by kFixed16 weights. Each 16-bit value is stored as two 8-bit parts
  // (kernels/common/act_q8.h).
  kFixed16,
  kQ16A256,
  kNVFP4,
  kIQ3_S,
  kIQ3_XXS,
  kIQ2_S,
  kIQ2_XS,
  kIQ2_XXS,
  kTQ2_0,
  kTQ1_0,
  kIQ1_S,
  kIQ1_M,
  kI64,  // of tables of token ids in files; no kernel reads it
  kCount
};

struct DTypeTraits {
  DType dtype;
  std::string_view name;      // lower-case name that file names, IR text and kernel names use
  std::uint32_t block_elems;  // number of elements per block
  std::uint32_t block_bytes;  // size of a block in bytes
  bool is_weight;             // whether a matrix of a model may have this type
  DType act;                  // result of act_dtype() if this is a weight type, else kCount
};

const DTypeTraits& traits(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);
std::vector<DType> weight_types();  // returns all types with is_weight, in the order of the enum
inline std::string_view to_string(DType dtype) {
  return traits(dtype).name;
}

// Returns the size in bytes of one row of n elements. REQUIRES: n is a multiple of block_elems.
inline std::uint64_t row_bytes(DType dtype, std::uint64_t n) {
  return n / traits(dtype).block_elems * traits(dtype).block_bytes;
}

// Returns the type of activations that a dot product with this weight format reads. For float weights this is f32. For
// quantized weights it is a quantized type with a scale per 256 values if the weight's blocks have 256 elements, and
// per 32 values if they have 32 (docs/arithmetic.md, rules 3 and 4). REQUIRES: traits(weight).is_weight.
DType act_dtype(DType weight);

}  // namespace zinc_rt
