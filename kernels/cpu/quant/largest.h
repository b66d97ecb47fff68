// The largest magnitude of some floats, which scales of integers are made of. Inlined into the caller's ZRT_MULTIVERSION
// function, as everything of walk.h is.
#pragma once

#include <cmath>

#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {

struct Largest {
  float magnitude;  // of those that are numbers
  bool is_finite;   // whether all are
};
ZRT_INLINE Largest largest_of(const float* x, std::uint32_t n) {
  float magnitude = 0.0f;
  float finite = 0.0f;  // x * 0 summed: 0, or NaN when some x is not finite
  for (std::uint32_t i = 0; i < n; ++i) {
    const float a = std::fabs(x[i]);
    magnitude = a > magnitude ? a : magnitude;
    finite = finite + x[i] * 0.0f;
  }
  return {magnitude, finite == 0.0f};
}

}  // namespace zinc_rt::cpu
