// Products of bytes in tiles of 16 x 16 by WMMA: D = A B + C, integers. Rows of A are columns of a product (rows of x),
// columns of B its rows of W, so that a lane has one row of W and 8 rows of x.
// What a lane holds differs between gfx11, where both halves of a wave have all 16 values of a step, and gfx12, where
// each has half of them. Which values these are is free as long as A and B agree: here two steps of a run of 32 values
// give a half of the wave 16 that lie together.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

typedef int Sums __attribute__((ext_vector_type(8)));

#if defined(__GFX12__)
constexpr uint32_t kOwnValues = 8;  // of a step, of a lane
#else
constexpr uint32_t kOwnValues = 16;
#endif
constexpr uint32_t kOwnWords = kOwnValues / 4;
typedef int StepBytes __attribute__((ext_vector_type(kOwnWords)));

// The first value that a lane has of step `s` of a run of kRun values, 16 or 32.
template <uint32_t kRun>
ZRT_DEVICE uint32_t first_of_step(uint32_t s) {
#if defined(__GFX12__)
  return thread() % kWave / 16 * (kRun / 2) + 8 * s;
#else
  return 16 * s;
#endif
}
// Which of the 16 rows of A register r of D is of.
ZRT_DEVICE uint32_t row_of_sum(uint32_t r) {
#if defined(__GFX12__)
  return thread() % kWave / 16 * 8 + r;
#else
  return 2 * r + thread() % kWave / 16;
#endif
}

// Which bytes have a sign.
template <bool kIsASigned, bool kIsBSigned = true>
ZRT_DEVICE Sums multiply_step(StepBytes a, StepBytes b, Sums c) {
#if defined(__GFX12__)
  return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(kIsASigned, a, kIsBSigned, b, c, false);
#else
  return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(kIsASigned, a, kIsBSigned, b, c, false);
#endif
}

}  // namespace zinc_rt::rdna
