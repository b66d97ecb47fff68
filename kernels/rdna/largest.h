// The index of the largest value, the lower one on a tie; NaN never wins, a row of NaN gives 0 (kernels/cpu/argmax.cpp).
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

// By a whole wave; every lane gets it.
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
