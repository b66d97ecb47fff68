// Applies the signs that IQ2 and IQ3 store beside the indices of a grid.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {

// Returns 8 signs from the 7 that a block stores, in the lowest bits of `stored`: an even number of them are set.
ZRT_INLINE std::uint32_t eight_signs(std::uint32_t stored) {
  const std::uint32_t seven = stored & 127;
  return seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1) << 7;
}

// Byte i of an entry is 255 if bit i of the entry's index is set, else 0.
constexpr auto kByteMasks = [] {
  std::array<std::uint64_t, 256> masks{};
  for (std::size_t signs = 0; signs < masks.size(); ++signs)
    for (int i = 0; i < 8; ++i)
      if ((signs >> i & 1) != 0) masks[signs] |= std::uint64_t{255} << (8 * i);
  return masks;
}();

// Writes the values of a point of 8, or of two points of 4, which are above 0. Those whose bit of `signs` is set become
// negative: -v = ~v + 1, and no byte carries into the next one, because ~v is below 255. (Little endian.)
ZRT_INLINE void store_signed(std::uint64_t values, std::uint32_t signs, std::int8_t* to) {
  const std::uint64_t mask = kByteMasks[signs & 255];
  values = (values ^ mask) + (mask & 0x0101010101010101u);
  std::memcpy(to, &values, sizeof(values));
}
ZRT_INLINE void copy_signed(const std::int8_t (&point)[8], std::uint32_t signs, std::int8_t* to) {
  std::uint64_t values;
  std::memcpy(&values, point, sizeof(values));
  store_signed(values, signs, to);
}
ZRT_INLINE void copy_signed(const std::int8_t (&first)[4], const std::int8_t (&second)[4], std::uint32_t signs,
                            std::int8_t* to) {
  std::uint32_t low, high;
  std::memcpy(&low, first, sizeof(low));
  std::memcpy(&high, second, sizeof(high));
  store_signed(low | std::uint64_t{high} << 32, signs, to);
}

}  // namespace zinc_rt::cpu
