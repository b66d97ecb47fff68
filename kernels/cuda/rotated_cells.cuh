// Helpers for attention over KV caches of rotated codes (kernels/common/kv_rotate.h), which uses the integer products
// of tensor cores (docs/arithmetic.md, rule 5). The operands:
// - q: int8 with a scale per 64 values
// - keys: int8 (k8v4), or table values of four-bit codes (k4v4)
// - values: table values of four-bit codes
// - weights of a chunk: two digits, with a scale per 64 values of the head
// integer_cells.cuh has what attention over 16-bit integers uses as well.
#pragma once

#include "kernels/cuda/integer_cells.cuh"
#include "kernels/cuda/rotated_args.h"

namespace zinc_rt::cuda::rotated {

constexpr uint32_t kMostBlocks = kv::kMaxHead / kv::kBlock;

// Returns the table values of the eight codes of a word, from the lowest four bits on. select_bytes() reads only the
// lower half of its selector.
__device__ __forceinline__ uint2 table_values(uint32_t codes) {
  constexpr auto table = copied(kv::kTable);
  constexpr uint32_t w0 = word(table, 0), w1 = word(table, 4), w2 = word(table, 8), w3 = word(table, 12);
  const uint32_t at = codes & 0x77777777u, half = (codes >> 1 & 0x44444444u) | 0x32103210u;
  const auto of = [&](uint32_t shift) {
    return select_bytes(select_bytes(w0, w1, at >> shift), select_bytes(w2, w3, at >> shift), half >> shift);
  };
  return uint2{of(0), of(16)};
}

// CodePairs combines the codes of two tokens, so that one table lookup serves both. a and b: the same bytes of the
// first and of the second token.
struct CodePairs {
  // Byte i is for value i (low) or 32 + i (high): the code of a in the lower four bits, that of b in the upper ones.
  uint32_t low, high;
};
__device__ __forceinline__ CodePairs pair_codes(uint32_t a, uint32_t b) {
  return {(a & 0x0F0F0F0Fu) | (b << 4 & 0xF0F0F0F0u), (a >> 4 & 0x0F0F0F0Fu) | (b & 0xF0F0F0F0u)};
}

// times_sum() returns sum * d, rounded once, as one fused multiply-add. `sum` is a sum of a block's products that began
// at kSumZero, so its bits are those of the float kRound + sum. kRound * d is exact and is subtracted in the same
// operation.
constexpr int kSumZero = 0x4B400000;
__device__ __forceinline__ float times_sum(int sum, float d) {
  return __fmaf_rn(__int_as_float(sum), d, -(exact::kRound * d));
}
// Returns 256 * high + low, rounded once as rule 5 says. high and low are the sums of products with both digits of the
// weights; the result is at most 2^31.
__device__ __forceinline__ float joined_digits(int high, int low) {
  return static_cast<float>(high * 256 + low);
}

// Return the scale of a key or of a value from the f16 that is stored in the cache, in the order of docs/arithmetic.md.
template <bool kIsR8>
__device__ __forceinline__ float key_scale(uint32_t half) {
  return widen_f16(static_cast<uint16_t>(half)) * (kIsR8 ? 1.0f : 1.0f / kv::kStoredScale);
}
__device__ __forceinline__ float value_scale(uint32_t half) {
  return widen_f16(static_cast<uint16_t>(half)) * (1.0f / kv::kStoredScale);
}

// quantize_block() quantizes a block of 64 values of q by QUANTIZE's rule. Each lane holds values lane and 32 + lane of
// the block; QBlock is their codes and the block's scale.
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
// QPlace is where the code of value i of q's head is put, so that products with keys find it as operand B: step of 32
// values, then byte word * 8 + byte of the step, where `word` is read by the lanes with lane % 4 == word.
// In k4v4, byte b of word w of a key has values 4 w + b and 32 + 4 w + b, and table_values() returns them alternately.
// So q is put in that order.
struct QPlace {
  uint32_t step, word, byte;  // word: lane % 4 of the lane that reads it
};
template <bool kIsR8>
__device__ __forceinline__ QPlace place_of_q(uint32_t i) {
  const uint32_t u = i % kv::kBlock, step = i / kv::kBlock * 2;
  if constexpr (kIsR8) return {step + u / 32, u / 4 % 4, u / 16 % 2 * 4 + u % 4};
  return {step + u / 16 % 2, u / 4 % 4, u % 4 * 2 + u / 32};
}

}  // namespace zinc_rt::cuda::rotated
