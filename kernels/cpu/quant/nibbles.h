// Defines functions that the 32-element formats with 4-bit codes share. Low nibble i is value i, and high nibble i is
// value 16 + i. kLow and kHigh return the integer value of a code.
#pragma once

#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {

template <class Block, int (*kLow)(const Block&, int), int (*kHigh)(const Block&, int)>
ZRT_INLINE std::int32_t dot_nibbles(const Block& block, const ActBlockQ8A32& x) {
  std::int32_t sum = 0;
  ZRT_ROLLED
  for (int i = 0; i < 16; ++i) sum += kLow(block, i) * x.qs[i] + kHigh(block, i) * x.qs[16 + i];
  return sum;
}

// Computes y = d * q, rounded once.
template <class Block, int (*kLow)(const Block&, int), int (*kHigh)(const Block&, int)>
ZRT_INLINE void scale_nibbles(const Block& block, float d, float* y) {
  ZRT_ROLLED
  for (int i = 0; i < 16; ++i) y[i] = d * static_cast<float>(kLow(block, i));
  ZRT_ROLLED
  for (int i = 0; i < 16; ++i) y[16 + i] = d * static_cast<float>(kHigh(block, i));
}

// Computes y = d * q + m, rounded twice.
template <class Block, int (*kLow)(const Block&, int), int (*kHigh)(const Block&, int)>
ZRT_INLINE void scale_nibbles(const Block& block, float d, float m, float* y) {
  ZRT_ROLLED
  for (int i = 0; i < 16; ++i) y[i] = d * static_cast<float>(kLow(block, i)) + m;
  ZRT_ROLLED
  for (int i = 0; i < 16; ++i) y[16 + i] = d * static_cast<float>(kHigh(block, i)) + m;
}

// Returns bit i of the 32 fifth bits of a Q5_0 or Q5_1 block, as 0 or 16.
ZRT_INLINE int fifth_bit(const std::uint8_t* qh, int i) {
  std::uint32_t bits;
  memcpy(&bits, qh, sizeof(bits));
  return static_cast<int>((bits >> i) & 1) << 4;
}

}  // namespace zinc_rt::cpu
