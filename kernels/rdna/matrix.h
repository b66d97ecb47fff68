// Multiplies matrices of bytes by WMMA, RDNA's matrix instruction: D = A B + C, where A and B have 16 x 16 bytes, and C
// and D 16 x 16 int32. In a product y = x W^T the rows of A are rows of x (columns of the product), and the columns of
// B are rows of W. So each lane holds values of one row of W, and the sums of that row with eight rows of x.
// One such instruction is a step; it multiplies 16 values of each row. On gfx11 both halves of a wave hold all 16 of
// them, on gfx12 each half holds 8. Which 16 values of k a step takes is free, as long as A and B agree. Here two steps
// take a run of 32 values in such a way that on gfx12 each lane's 16 values are neighbours and can be loaded together.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

typedef int Sums __attribute__((ext_vector_type(8)));

#if defined(__GFX12__)
constexpr uint32_t kOwnValues = 8;  // values of a step that one lane holds
#else
constexpr uint32_t kOwnValues = 16;
#endif
constexpr uint32_t kOwnWords = kOwnValues / 4;
typedef int StepBytes __attribute__((ext_vector_type(kOwnWords)));

// Returns the first of the values that this lane holds in step s, as a place in a run of kRun values. kRun is 16 or 32.
template <uint32_t kRun>
ZRT_DEVICE uint32_t first_of_step(uint32_t s) {
#if defined(__GFX12__)
  return thread() % kWave / 16 * (kRun / 2) + 8 * s;
#else
  return 16 * s;
#endif
}
// Returns the row of A to which element r of this lane's sums belongs.
ZRT_DEVICE uint32_t row_of_sum(uint32_t r) {
#if defined(__GFX12__)
  return thread() % kWave / 16 * 8 + r;
#else
  return 2 * r + thread() % kWave / 16;
#endif
}

// Returns a b + c for one step. kIsASigned and kIsBSigned: whether the bytes of a and of b are signed.
template <bool kIsASigned, bool kIsBSigned = true>
ZRT_DEVICE Sums multiply_step(StepBytes a, StepBytes b, Sums c) {
#if defined(__GFX12__)
  return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(kIsASigned, a, kIsBSigned, b, c, false);
#else
  return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(kIsASigned, a, kIsBSigned, b, c, false);
#endif
}

}  // namespace zinc_rt::rdna
