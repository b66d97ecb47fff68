// Defines macros and constants for every unit that is compiled for an instruction set. The macros make functions static
// and inlined.
#pragma once

#include <cstdint>

#define ZRT_SIMD static inline __attribute__((always_inline))
#define ZRT_MEMBER __attribute__((always_inline))  // for members of templates, which are inline already

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kLanes = 16;

// Returns how many columns (1 to 4) a loop computes at once if each has n sums and the registers hold `sums` sums.
constexpr int columns_of(int n, int sums) {
  return sums / n < 1 ? 1 : sums / n > 4 ? 4 : sums / n;
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
