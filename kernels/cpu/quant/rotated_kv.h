// The reference for writing and reading the KV cache's rotated cells (kernels/common/kv_rotate.h). All functions are
// pure and thread safe; tokens of one page may be written at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/common/kv_rotate.h"
#include "kernels/cpu/quant/integer_kv.h"

namespace zinc_rt::cpu {

// The heads of a page part.
struct RotatedPart {
  DType type;  // kR8 or kR4; of values kR4
  std::uint32_t n_heads, head_dim;
};

// Writes token `token` (0 to 15) of a page part: row has n_heads * head_dim values. Each head x, as H(s x), in blocks
// of 64:
//   r8  as q8_0 over 64: d = f16(amax * (1 / 127)), q = round(x * (1 / d)) held to -127..127, all 0 where d is 0
//   r4  z = x * (126 / amax). For each of kFactors a code is how many of kMiddles lie below z * factor, t = dot(z,
//       kTable[code]) by rule 4 and n the sum of kTable[code]^2; the first factor with the largest t * t / n is taken,
//       whose error is the least: d = f16((t / n) * (amax * (64 / 126))). All 0 where amax is below 2^-100
// A NaN or an infinity in the block, with r4 an amax above 2^100, or a d beyond f16 makes d NaN, and all codes 0 but for
// such a d of r4.
void write_rotated_keys(const float* row, void* page, std::uint32_t token, const RotatedPart& part);
void write_rotated_values(const float* row, void* page, std::uint32_t token, const RotatedPart& part);

// H(s q) as int8 with one scale for 64, by the rule of QUANTIZE.
struct RotatedQuery {
  alignas(64) std::int8_t q[kv::kMaxHead];
  float d[kv::kMaxHead / kv::kBlock];
};
void rotate_query(const float* q, std::uint32_t head_dim, RotatedQuery& out);

// dots[j] = the dot of q with the key of token j, for all 16 tokens of the page, including tokens that were never
// written: v = 0; for blocks ascending v = fma(float(isum) * d_k, d_q, v), where isum is exact. This is R times the dot
// of the vectors before rotation.
void rotated_dots(const RotatedQuery& q, const void* page, std::uint32_t head, const RotatedPart& part, float* dots);

// The end of an output, in place: y = s H(y) * (1 / head_dim).
void rotate_output_back(float* y, std::uint32_t head_dim);

// Of the values of a page's 16 tokens, one block of 64 of a head; type kR4.
struct RotatedBlock {
  RotatedPart part;
  std::uint32_t head, block;
};
// d[j] = the scale of token j's block.
void rotated_value_scales(const void* page, const RotatedBlock& of, float* d);
// Adds kTable[c_i] of the 16 tokens, times the digits of their weights, to the first 64 sums. The digits of tokens that
// were not written are 0.
void add_rotated_values(const std::int16_t* high, const std::int16_t* low, const void* page, const RotatedBlock& of,
                        IntegerSums& sums);

}  // namespace zinc_rt::cpu
