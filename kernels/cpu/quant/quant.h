// Defines the table of weight formats. Each format is a row of the table, and a file of its own defines the row
// (q4_k.cpp defines the row of q4_k). All functions are pure and thread safe. k counts elements and is a multiple of
// the format's block_elems.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace zinc_rt::cpu {

struct DecodedBlock;  // kernels/cpu/quant/decoded.h

struct QuantFormat {
  DType dtype;
  // QUANTIZE converts x to this type for the format: kQ8A256 for K-quants, kQ8A32 for formats with blocks of 32,
  // kQ16A256 for fixed16. It is kF32 for float weights, for which x is not quantized.
  DType act;
  // Converts a row to floats, y[0..k).
  void (*dequantize_row)(const void* row, float* y, std::int64_t k);
  // Returns the dot of a weight row with an activation row of type `act`, in the order of docs/arithmetic.md (rules 3
  // and 4).
  float (*dot)(const void* row, const void* act, std::int64_t k);
  // Decodes a block, in formats whose matrices the fast kernel sets decode while they multiply; else null.
  void (*decode)(const void* block, DecodedBlock& to) = nullptr;
};

std::span<const QuantFormat* const> quant_formats();
const QuantFormat* quant_format(DType dtype);  // returns nullptr if the dtype is not a weight format

// Returns the dot of a weight row with a float row, for float weights and for `activations = f32`. The weight row may
// have any format; it is dequantized group by group. The order is that of rule 4: groups of 256, in each 16 lanes (lane
// = k mod 16, fma), which are folded by a fixed tree into v; acc = acc + v.
float dot_f32(const QuantFormat& format, const void* row, const float* x, std::int64_t k);

}  // namespace zinc_rt::cpu
