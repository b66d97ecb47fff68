// Applies the signs that IQ2 and IQ3 store beside the indices of a grid.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {

// Returns 8 signs from the 7 that a block stores, in the lowest bits of `stored`: an even number of them are set.
ZRT_INLINE std::uint32_t eight_signs(std::uint32_t stored) {
  const std::uint32_t seven = stored & 127;
  return seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1) << 7;
}

// Copies kN values; those whose bit of `signs` is set become negative.
template <int kN>
ZRT_INLINE void copy_signed(const std::int8_t* values, std::uint32_t signs, std::int8_t* to) {
  for (int i = 0; i < kN; ++i) {
    const int is_negative = static_cast<int>(signs >> i & 1);
    to[i] = static_cast<std::int8_t>((values[i] ^ -is_negative) + is_negative);
  }
}

}  // namespace zinc_rt::cpu
