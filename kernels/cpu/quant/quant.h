// The table of weight formats. Each format is a row, defined in its own file (q4_k.cpp defines the row of q4_k). All
// functions are pure and thread safe. k counts elements and is a multiple of the format's block_elems.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace zinc_rt::cpu {

struct QuantFormat {
  DType dtype;
  // The type to which QUANTIZE converts x for this format: kQ8A256 for K-quants, kQ8A32 for 32-blocks, kQ16A256 for
  // fixed16. kF32 for float weights, for which x is not quantized.
  DType act;
  // Converts a row: y[0..k) are its values as floats.
  void (*dequantize_row)(const void* row, float* y, std::int64_t k);
  // Dot of a weight row with an activation row of type `act`, in the order of docs/arithmetic.md (rules 3 and 4).
  float (*dot)(const void* row, const void* act, std::int64_t k);
};

std::span<const QuantFormat* const> quant_formats();
const QuantFormat* quant_format(DType dtype);  // nullptr if the dtype is not a weight format

// Dot of two float rows in the order of rule 4: groups of 256, in each 16 lanes (lane = k mod 16, fma) folded by a
// fixed tree into v; acc = acc + v. The weight row is any format (dequantized group by group), x is float: `activations
// = f32`.
float dot_f32(const QuantFormat& format, const void* row, const float* x, std::int64_t k);

}  // namespace zinc_rt::cpu
