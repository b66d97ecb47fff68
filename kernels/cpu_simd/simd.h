// What every unit compiled for an instruction set has: functions of its own, in place at each call, and 16 lanes.
#pragma once

#include <cstdint>

#define ZRT_SIMD static inline __attribute__((always_inline))
#define ZRT_MEMBER __attribute__((always_inline))  // of a template, which is inline already

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kLanes = 16;

// How many columns of n sums each, 1 to 4, a loop takes at once where `sums` fit into the registers.
constexpr int columns_of(int n, int sums) {
  return sums / n < 1 ? 1 : sums / n > 4 ? 4 : sums / n;
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
