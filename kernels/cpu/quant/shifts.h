// Applies the shifts of IQ1_S and IQ1_M to the points of their grid.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {

// Writes 8 q + shift, where shift is 1 or -1, for the 8 values q of a point, which are -1, 0 or 1. The bytes of a
// 64-bit number are computed at once: with 2 added to each q and 112 to each result no byte is below 0 or above 255, so
// none carries into the next one. (Little endian.)
ZRT_INLINE void copy_shifted(const std::int8_t (&point)[8], int shift, std::int8_t* to) {
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  std::uint64_t values;
  std::memcpy(&values, point, sizeof(values));
  values = (values & 3 * kOnes) ^ 2 * kOnes;                              // q + 2
  values = 8 * values + static_cast<std::uint64_t>(112 + shift) * kOnes;  // 8 q + shift + 128
  values ^= 128 * kOnes;
  std::memcpy(to, &values, sizeof(values));
}

}  // namespace zinc_rt::cpu
