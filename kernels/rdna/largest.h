// Finds the largest value of a row, as ARGMAX defines it (kernels/cpu/argmax.cpp). Of equal values the one with the
// lower index counts. A NaN never wins, and a row of only NaN gives index 0.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

// Returns the index of the largest of n values to every lane. REQUIRES: the first wave of a workgroup calls it as a
// whole.
ZRT_DEVICE uint32_t largest_index(const float* x, uint32_t n) {
  constexpr uint32_t kNone = 0xFFFFFFFFu;
  float best = 0.0f;
  uint32_t index = kNone;
  for (uint32_t i = thread(); i < n; i += kWave) {
    const float v = x[i];
    if (v == v && (index == kNone || v > best)) best = v, index = i;
  }
  for (uint32_t other = 16; other > 0; other /= 2) {
    const float v = from_lane(best, thread() ^ other);
    const uint32_t i = from_lane(index, thread() ^ other);
    if (i != kNone && (index == kNone || v > best || (v == best && i < index))) best = v, index = i;
  }
  return index == kNone ? 0 : index;
}

}  // namespace zinc_rt::rdna
