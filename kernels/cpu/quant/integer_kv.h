// Declares the reference functions that write and read the KV cache's integer cells (kernels/common/kv_integer.h). All
// are pure and thread safe. Tokens of one page may be written at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/kv_integer.h"

namespace zinc_rt::cpu {

// IntegerPart is the number and size of the heads in the K or V of a page and layer.
struct IntegerPart {
  std::uint32_t n_heads, head_dim;
};

// Write K or V of token `token` (0 to 15) to a page. row has n_heads * head_dim values. For each head, amax is the
// largest magnitude |x|, d is the least bf16 that is not below amax * (1 / 32639), and a code is round(x * (1 / d)),
// clamped to -32639..32639. If amax is below 2^-100, all codes are 0. If the head has a NaN or an infinity, its d is
// NaN.
void write_integer_keys(const float* row, void* page, std::uint32_t token, const IntegerPart& part);
void write_integer_values(const float* row, void* page, std::uint32_t token, const IntegerPart& part);

// Converts n floats to the digits of 16-bit codes, by QUANTIZE's rule with 32639 in place of 127. Returns the scale.
float quantize_to_digits(const float* x, std::uint32_t n, std::int16_t* high, std::int16_t* low);

struct IntegerQuery {
  alignas(64) std::int16_t high[kv_integer::kMaxHead];
  alignas(64) std::int16_t low[kv_integer::kMaxHead];
};

// Computes the dots of q with the 16 keys of a page, including keys of tokens that were never written, whose dots are
// not used: dots[j] = fma(float(A), 256, float(B)) * d_j. A and B are the sums of key j's codes times the high and the
// low digits of q.
void integer_dots(const IntegerQuery& q, const void* page, std::uint32_t head, const IntegerPart& part, float* dots);

// Reads the scales of a page's 16 tokens into `d`.
void integer_scales(const void* page, std::uint32_t head, const IntegerPart& part, float* d);

// IntegerSums holds the sums of values times the high and the low digits of their weights, for one head.
struct IntegerSums {
  std::int32_t high[kv_integer::kMaxHead];
  std::int32_t low[kv_integer::kMaxHead];
};
// Adds the values of a page's 16 tokens, times their weights, to `sums`. The digits of tokens that were not written
// must be 0.
void add_integer_values(const std::int16_t* high, const std::int16_t* low, const void* page, std::uint32_t head,
                        const IntegerPart& part, IntegerSums& sums);
// Computes o[i] = fma(float(high), 256, float(low)) * d for n values.
void join_sums(const IntegerSums& sums, std::uint32_t n, float d, float* o);

}  // namespace zinc_rt::cpu
