// Attention over caches of rotated codes (kernels/common/kv_rotate.h), by the integer products of tensor cores: q is
// int8 with a scale for 64 values, a key int8 or table values, a value a table value, and the weights of a chunk are
// two digits with a scale for 64 values of the head (docs/arithmetic.md, rule 5). What is common with other integers:
// integer_cells.cuh.
#pragma once

#include "kernels/cuda/integer_cells.cuh"
#include "kernels/cuda/rotated_args.h"

namespace zinc_rt::cuda::rotated {

constexpr uint32_t kMostBlocks = kv::kMaxHead / kv::kBlock;

// The table values of a word's eight codes, from its lowest four bits on. Only the lower half of a selector counts.
__device__ __forceinline__ uint2 table_values(uint32_t codes) {
  constexpr auto table = copied(kv::kTable);
  constexpr uint32_t w0 = word(table, 0), w1 = word(table, 4), w2 = word(table, 8), w3 = word(table, 12);
  const uint32_t at = codes & 0x77777777u, half = (codes >> 1 & 0x44444444u) | 0x32103210u;
  const auto of = [&](uint32_t shift) {
    return select_bytes(select_bytes(w0, w1, at >> shift), select_bytes(w2, w3, at >> shift), half >> shift);
  };
  return uint2{of(0), of(16)};
}

// Codes of values of four tokens or more, as they become an operand. a and b: the same bytes of two tokens.
struct CodePairs {
  uint32_t low, high;  // values i and 32 + i of byte i; of each byte those of a and of b
};
__device__ __forceinline__ CodePairs pair_codes(uint32_t a, uint32_t b) {
  return {(a & 0x0F0F0F0Fu) | (b << 4 & 0xF0F0F0F0u), (a >> 4 & 0x0F0F0F0Fu) | (b & 0xF0F0F0F0u)};
}

// A sum of a block's products that began with kSumZero is the bits of the float kRound + sum, and the product of the
// sum with d, rounded once, is a multiply-add: kRound * d is exact.
constexpr int kSumZero = 0x4B400000;
__device__ __forceinline__ float times_sum(int sum, float d) {
  return __fmaf_rn(__int_as_float(sum), d, -(exact::kRound * d));
}
// The sum of products with both digits of weights, at most 2^31: 256 high + low, rounded once as rule 5 does.
__device__ __forceinline__ float joined_digits(int high, int low) {
  return static_cast<float>(high * 256 + low);
}

// Scales of keys, in the order of docs/arithmetic.md.
template <bool kIsR8>
__device__ __forceinline__ float key_scale(uint32_t half) {
  return widen_f16(static_cast<uint16_t>(half)) * (kIsR8 ? 1.0f : 1.0f / kv::kStoredScale);
}
__device__ __forceinline__ float value_scale(uint32_t half) {
  return widen_f16(static_cast<uint16_t>(half)) * (1.0f / kv::kStoredScale);
}

// Codes of a block of q, of which a lane has values lane and 32 + lane, and their scale (QUANTIZE's rule).
struct QBlock {
  int first, second;
  float d;
};
__device__ __forceinline__ QBlock quantize_block(float first, float second) {
  const float most = largest_or_nan_of_warp(max_or_nan(first < 0 ? -first : first, second < 0 ? -second : second));
  const bool is_usable = most >= 0x1p-100f && most <= 0x1p120f;
  const float of = is_usable ? most : 1.0f, inverse = is_usable ? exact::div(127.0f, of) : 0.0f;
  const auto code = [&](float x) { return is_usable ? static_cast<int>(exact::round_int(x * inverse)) : 0; };
  return {code(first), code(second), is_usable ? exact::div(of, 127.0f) : most < 0x1p-100f ? 0.0f : nan_value()};
}
// Where the code of value i (of q's head) is among the bytes that products with keys want: step of 32 values, then a
// byte of the step: lane % 4 * 8 + a byte of its two words. The words of keys of four bits have values 4 w + b and
// 32 + 4 w + b, which table_values() gives by turns.
struct QPlace {
  uint32_t step, word, byte;  // word: lane % 4
};
template <bool kIsR8>
__device__ __forceinline__ QPlace place_of_q(uint32_t i) {
  const uint32_t u = i % kv::kBlock, step = i / kv::kBlock * 2;
  if constexpr (kIsR8) return {step + u / 32, u / 4 % 4, u / 16 % 2 * 4 + u % 4};
  return {step + u / 16 % 2, u / 4 % 4, u % 4 * 2 + u / 32};
}

}  // namespace zinc_rt::cuda::rotated
