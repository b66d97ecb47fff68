// The one way in which 16 partial sums become one (docs/arithmetic.md, rule 4): lanes l and l + 8 are added, then l +
// 4, l + 2 and l + 1. Shared by host and device (C++17).
#pragma once

#if defined(__CUDACC__)
#define ZRT_FOLD_FN static __host__ __device__ __forceinline__
#else
#define ZRT_FOLD_FN static inline __attribute__((always_inline))
#endif

namespace zinc_rt {

// The result; the lanes are used up.
ZRT_FOLD_FN float fold16(float* lane) {
  for (int width = 8; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] = lane[l] + lane[l + width];
  return lane[0];
}

}  // namespace zinc_rt
