// For every unit that is compiled for an instruction set: macros that make functions static and inlined, and the number
// of lanes.
#pragma once

#include <cstdint>

#define ZRT_SIMD static inline __attribute__((always_inline))
#define ZRT_MEMBER __attribute__((always_inline))  // of a template, which is inline already

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kLanes = 16;

// How many columns (1 to 4) of n sums each a loop takes at once, where `sums` fit into the registers.
constexpr int columns_of(int n, int sums) {
  return sums / n < 1 ? 1 : sums / n > 4 ? 4 : sums / n;
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
