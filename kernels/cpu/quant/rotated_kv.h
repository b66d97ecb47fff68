// Declares the reference functions that write and read the KV cache's rotated cells (kernels/common/kv_rotate.h). All
// are pure and thread safe. Tokens of one page may be written at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/common/kv_rotate.h"
#include "kernels/cpu/quant/integer_kv.h"

namespace zinc_rt::cpu {

// RotatedPart is the type, number and size of the heads in the K or V of a page and layer.
struct RotatedPart {
  DType type;  // kR8 or kR4 for keys; kR4 for values
  std::uint32_t n_heads, head_dim;
};

// Write K or V of token `token` (0 to 15) to a page. row has n_heads * head_dim values. Each head x is rotated, H(s x),
// and encoded in blocks of 64 values:
//   r8  like q8_0, with 64 values: d = f16(amax * (1 / 127)), q = round(x * (1 / d)) clamped to -127..127; all 0 if
//       d is 0
//   r4  z = x * (126 / amax). For each of kFactors, a code is the number of kMiddles below z * factor, t = dot(z,
//       kTable[code]) by rule 4, and n = the sum of kTable[code]^2. The first factor with the largest t * t / n has the
//       least error and is used: d = f16((t / n) * (amax * (64 / 126))). All codes are 0 if amax is below 2^-100.
// d is NaN if the block has a NaN or an infinity, if d exceeds f16, or, with r4, if amax is above 2^100. Then all codes
// are 0, except if the d of r4 exceeds f16.
void write_rotated_keys(const float* row, void* page, std::uint32_t token, const RotatedPart& part);
void write_rotated_values(const float* row, void* page, std::uint32_t token, const RotatedPart& part);

// RotatedQuery is a query after rotation, H(s q), quantized to int8 with one scale per 64 values, by the rule of
// QUANTIZE.
struct RotatedQuery {
  alignas(64) std::int8_t q[kv::kMaxHead];
  float d[kv::kMaxHead / kv::kBlock];
};
void rotate_query(const float* q, std::uint32_t head_dim, RotatedQuery& out);

// Computes the dots of q with all 16 keys of a page, including keys of tokens that were never written, whose dots are
// not used. For each key, v begins at 0, and for blocks ascending v = fma(float(isum) * d_k, d_q, v), where isum is
// exact. The result is head_dim times the dot of the vectors before rotation.
void rotated_dots(const RotatedQuery& q, const void* page, std::uint32_t head, const RotatedPart& part, float* dots);

// Undoes the rotation of an output, in place: y = s H(y) * (1 / head_dim).
void rotate_output_back(float* y, std::uint32_t head_dim);

// RotatedBlock is one block of 64 columns of a head, in the values of a page's 16 tokens. The values' type is kR4.
struct RotatedBlock {
  RotatedPart part;
  std::uint32_t head, block;
};
// Reads the scale of token j's block into d[j], for the page's 16 tokens.
void rotated_value_scales(const void* page, const RotatedBlock& of, float* d);
// Adds kTable[c_i] of the 16 tokens, times the digits of their weights, to the first 64 sums. The digits of tokens that
// were not written must be 0.
void add_rotated_values(const std::int16_t* high, const std::int16_t* low, const void* page, const RotatedBlock& of,
                        IntegerSums& sums);

}  // namespace zinc_rt::cpu
