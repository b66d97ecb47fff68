// Attention over caches of 16-bit integers (kernels/common/kv_integer.h), by the integer products of tensor cores. A
// code is 256 * upper + lower, the bytes as they lie: upper with its sign, lower without. What codes are multiplied by,
// q or the weights of a chunk, is two signed digits (kernels/common/digits.h). So a sum over codes and one digit is 256
// times that of the upper bytes plus that of the lower ones, exactly; the order of its terms is free.
#pragma once

#include "kernels/common/kv_integer.h"
#include "kernels/cuda/attention.cuh"

namespace zinc_rt::cuda {

namespace kv_integer = zinc_rt::kv_integer;
constexpr float kMostOfCode = zinc_rt::digits::kMost, kLeastLargest = 0x1p-100f, kMostLargest = 0x1p120f;

// The bytes of two words, each of two codes: an operand's register of four.
__device__ __forceinline__ uint32_t upper_bytes(uint32_t a, uint32_t b) {
  return __byte_perm(a, b, 0x7531);
}
__device__ __forceinline__ uint32_t lower_bytes(uint32_t a, uint32_t b) {
  return __byte_perm(a, b, 0x6420);
}

// Sums of products with the high and with the low digit, out of those of the bytes, as a float.
__device__ __forceinline__ float joined(int upper_high, int lower_high, int upper_low, int lower_low) {
  const int high = static_cast<int>(static_cast<uint32_t>(upper_high) * 256 + static_cast<uint32_t>(lower_high)),
            low = static_cast<int>(static_cast<uint32_t>(upper_low) * 256 + static_cast<uint32_t>(lower_low));
  return __fmaf_rn(static_cast<float>(high), 256.0f, static_cast<float>(low));
}

// The scale of codes by the largest magnitude among the values, which is NaN where one of them is, and its inverse.
struct CodeScale {
  float d, inverse;
};
__device__ __forceinline__ CodeScale code_scale(float largest) {
  const bool is_usable = largest >= kLeastLargest && largest <= kMostLargest;
  const float of = is_usable ? largest : 1.0f, d = exact::div(of, kMostOfCode), inverse = exact::div(kMostOfCode, of);
  return {is_usable ? d : largest < kLeastLargest ? 0.0f : nan_value(), is_usable ? inverse : 0.0f};
}

// A code plus 128 in the lower half: its byte 1 is the high digit, its byte 0 the low one with the top bit inverted.
// Adding 1.5 * 2^23 rounds, as exact::round_int does; 128 more change no parity. Infinities and NaN give some digits.
__device__ __forceinline__ uint32_t code_bits(float x, float inverse) {
  return __float_as_uint(x * inverse + (exact::kRound + 128.0f));
}
constexpr uint32_t kLowBits = 0x80808080u;

}  // namespace zinc_rt::cuda
