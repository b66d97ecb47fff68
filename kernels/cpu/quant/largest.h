// Finds the largest magnitude of some floats, from which integer scales are computed. Like everything in walk.h it is
// inlined into the caller's ZRT_MULTIVERSION function.
#pragma once

#include <cmath>

#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {

struct Largest {
  float magnitude;  // largest magnitude of all values that are not NaN
  bool is_finite;   // whether all values are finite
};
ZRT_INLINE Largest largest_of(const float* x, std::uint32_t n) {
  float magnitude = 0.0f;
  float finite = 0.0f;  // sum of x * 0, which is 0, or NaN if some x is not finite
  for (std::uint32_t i = 0; i < n; ++i) {
    const float a = std::fabs(x[i]);
    magnitude = a > magnitude ? a : magnitude;
    finite = finite + x[i] * 0.0f;
  }
  return {magnitude, finite == 0.0f};
}

}  // namespace zinc_rt::cpu
