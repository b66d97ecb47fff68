// The one order in which 16 partial sums are added (docs/arithmetic.md, rule 4), called the fold. The 16 numbers are
// lanes. Lane l + 8 is added to lane l for l < 8, then lane l + 4 to lane l for l < 4, lane l + 2 for l < 2, and lane 1
// to lane 0. Shared by host and device (C++17).
#pragma once

#if defined(__CUDACC__)
#define ZRT_FOLD_FN static __host__ __device__ __forceinline__
#else
#define ZRT_FOLD_FN static inline __attribute__((always_inline))
#endif

namespace zinc_rt {

// Returns the sum. The array is overwritten.
ZRT_FOLD_FN float fold16(float* lane) {
  for (int width = 8; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] = lane[l] + lane[l + width];
  return lane[0];
}

}  // namespace zinc_rt
