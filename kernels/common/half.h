// Conversions between f32 and the 16-bit floats, by integer arithmetic, so that every compiler and device gives the
// same bits. To 16 bits: round to nearest, ties to even; a number too large becomes infinity. A NaN stays a NaN with
// the upper bits of its payload and becomes quiet, as processors convert. Shared by host and device (C++17). No
// branches: loops over these vectorize.
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

// All ones where the condition holds. Selecting by masks keeps the float operations out of branches, which compilers
// would otherwise make of them and then not vectorize.
ZRT_HALF_FN uint32_t mask_of(bool condition) {
  return 0u - (uint32_t)condition;
}

ZRT_HALF_FN float f16_to_f32(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  // A subnormal is rest * 2^-24, exact in f32 and never an f32 subnormal.
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
  // Below 2^-14: one ulp of 0.5 is 2^-24, so the addition itself rounds to a multiple of the smallest subnormal.
  const uint32_t subnormal = f32_bits(f32_from_bits(rest & is_small) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (rest - (112u << 23) + 0x0fffu + ((rest >> 13) & 1u)) >> 13;  // 65520 and up carry to 0x7c00
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
