// Splits a 16-bit code into two digits of 8 bits, high and low, each from -128 to 127: code = 256 * high + low, with
// |code| <= 32,639. Byte multipliers and matrix units can multiply digits, and sums of such products are exact
// (docs/arithmetic.md, rules 4 and 5).
// Shared by host and device (C++17).
#pragma once

#include <stdint.h>

#if defined(__CUDACC__) || defined(__HIPCC__)
#define ZRT_DIGITS_FN static __host__ __device__ __forceinline__
#else
#define ZRT_DIGITS_FN static inline __attribute__((always_inline))
#endif

namespace zinc_rt::digits {

// The largest code: both digits are 127.
constexpr int32_t kMostCode = 127 * 256 + 127;
constexpr float kMost = static_cast<float>(kMostCode);

ZRT_DIGITS_FN int32_t high_digit(int32_t code) {
  return (code + 128) >> 8;
}
ZRT_DIGITS_FN int32_t low_digit(int32_t code) {
  return code - high_digit(code) * 256;
}

}  // namespace zinc_rt::digits
