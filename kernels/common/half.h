// Conversions between f32 and the two 16-bit floats, f16 and bf16. They use integer operations on the bits, and float
// operations that round alike everywhere, so the bits are the same with every compiler and device. To 16 bits, numbers
// are rounded to the nearest, ties to even, and a number that is too large becomes infinity. A NaN becomes quiet and
// keeps the upper bits of its payload, as on processors.
// There are no branches, so compilers can vectorize loops over these functions. Shared by host and device (C++17).
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define ZRT_HALF_FN static __host__ __device__ __forceinline__
#else
#define ZRT_HALF_FN static inline __attribute__((always_inline))
#endif

namespace zinc_rt {

ZRT_HALF_FN uint32_t f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

ZRT_HALF_FN float f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Returns all ones if the condition holds, else 0. Selecting by masks keeps compilers from making branches of float
// operations, which they would not vectorize.
ZRT_HALF_FN uint32_t mask_of(bool condition) {
  return 0u - (uint32_t)condition;
}

ZRT_HALF_FN float f16_to_f32(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  // A subnormal number is rest * 2^-24. The product is exact, and never subnormal in f32.
  const uint32_t subnormal = f32_bits((float)(int32_t)rest * 5.9604644775390625e-8f);
  const uint32_t is_subnormal = mask_of(rest < 0x0400u);
  const uint32_t is_infinite_or_nan = mask_of(rest >= 0x7c00u);
  const uint32_t normal = (rest << 13) + (112u << 23) + (is_infinite_or_nan & (112u << 23));
  const uint32_t quiet = mask_of(rest > 0x7c00u) & 0x00400000u;
  return f32_from_bits(sign | quiet | (is_subnormal & subnormal) | (~is_subnormal & normal));
}

ZRT_HALF_FN uint16_t f32_to_f16(float value) {
  const uint32_t bits = f32_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t rest = bits & 0x7fffffffu;
  const uint32_t is_small = mask_of(rest < 0x38800000u);
  const uint32_t is_huge = mask_of(rest >= 0x47800000u);
  const uint32_t is_nan = mask_of(rest > 0x7f800000u);
  // Numbers below 2^-14 become subnormal. The addition itself rounds them to a multiple of 2^-24, the smallest
  // subnormal f16, because that is one ulp of 0.5.
  const uint32_t subnormal = f32_bits(f32_from_bits(rest & is_small) + 0.5f) - 0x3f000000u;
  // From 65520 on the rounding carries into the exponent and gives infinity, 0x7c00.
  const uint32_t normal = (rest - (112u << 23) + 0x0fffu + ((rest >> 13) & 1u)) >> 13;
  const uint32_t nan = 0x7e00u | ((rest >> 13) & 0x03ffu);
  const uint32_t finite = (is_small & subnormal) | (~is_small & normal);
  const uint32_t ordered = (is_huge & 0x7c00u) | (~is_huge & finite);
  return (uint16_t)(sign | (is_nan & nan) | (~is_nan & ordered));
}

ZRT_HALF_FN float bf16_to_f32(uint16_t half) {
  return f32_from_bits((uint32_t)half << 16);
}

ZRT_HALF_FN uint16_t f32_to_bf16(float value) {
  const uint32_t bits = f32_bits(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x0040u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

}  // namespace zinc_rt
