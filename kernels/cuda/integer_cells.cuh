// Helpers for attention over KV caches of 16-bit integers (kernels/common/kv_integer.h), which uses the integer
// products of tensor cores. These multiply bytes, so every 16-bit factor is split:
// - a code of K or V is 256 * upper + lower. These are its two bytes as stored: upper is signed, lower is unsigned
// - the other factor (a code of q, or a weight of a chunk) is 256 * high + low, two signed digits
//   (kernels/common/digits.h)
// For either digit, the sum of code * digit is 256 * (sum of upper * digit) + (sum of lower * digit). All of these sums
// are exact integers, so the order of their terms is free.
#pragma once

#include "kernels/common/kv_integer.h"
#include "kernels/cuda/attention.cuh"

namespace zinc_rt::cuda {

namespace kv_integer = zinc_rt::kv_integer;
constexpr float kMostOfCode = zinc_rt::digits::kMost, kLeastLargest = 0x1p-100f, kMostLargest = 0x1p120f;

// Return the upper (lower) bytes of the four 16-bit codes in words a and b, as one register of an mma operand.
__device__ __forceinline__ uint32_t upper_bytes(uint32_t a, uint32_t b) {
  return __byte_perm(a, b, 0x7531);
}
__device__ __forceinline__ uint32_t lower_bytes(uint32_t a, uint32_t b) {
  return __byte_perm(a, b, 0x6420);
}

// Returns 256 * high + low as a float (rule 5 of docs/arithmetic.md), where high and low are the sums of products with
// the high and the low digits. Each argument is the sum of products of one kind of byte with one kind of digit:
// upper_high is that of upper bytes with high digits.
__device__ __forceinline__ float joined(int upper_high, int lower_high, int upper_low, int lower_low) {
  const int high = static_cast<int>(static_cast<uint32_t>(upper_high) * 256 + static_cast<uint32_t>(lower_high)),
            low = static_cast<int>(static_cast<uint32_t>(upper_low) * 256 + static_cast<uint32_t>(lower_low));
  return __fmaf_rn(static_cast<float>(high), 256.0f, static_cast<float>(low));
}

// The scale of a row of codes, and its inverse. code_scale() computes both from the largest magnitude among the values.
// d is NaN if `largest` is NaN or too large, and 0 if it is too small to be divided by.
struct CodeScale {
  float d, inverse;
};
// Returns the scale and its inverse for values of which `largest` is the largest magnitude.
__device__ __forceinline__ CodeScale code_scale(float largest) {
  const bool is_usable = largest >= kLeastLargest && largest <= kMostLargest;
  const float of = is_usable ? largest : 1.0f, d = exact::div(of, kMostOfCode), inverse = exact::div(kMostOfCode, of);
  return {is_usable ? d : largest < kLeastLargest ? 0.0f : nan_value(), is_usable ? inverse : 0.0f};
}

// Returns the bits of a float whose lower half is code + 128, where code = round(x * inverse). Of these bits, byte 1 is
// the high digit, and byte 0 is the low digit with its top bit inverted (kLowBits inverts it back in four codes).
// Adding 1.5 * 2^23 rounds to an integer, as exact::round_int does. Adding 128 as well does not change how ties round,
// because 128 is even. For infinities and NaN the digits are meaningless; the row's scale is NaN then.
__device__ __forceinline__ uint32_t code_bits(float x, float inverse) {
  return __float_as_uint(x * inverse + (exact::kRound + 128.0f));
}
constexpr uint32_t kLowBits = 0x80808080u;

}  // namespace zinc_rt::cuda
