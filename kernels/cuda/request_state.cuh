// What the kernels that store words in the slot table share.
#pragma once

#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

// Returns whether no row after row r, of n rows in all, has the same slot.
__device__ __forceinline__ bool is_last_of_slot(const int32_t* slots, uint32_t r, uint32_t n) {
  for (uint32_t later = r + 1; later < n; ++later)
    if (slots[later] == slots[r]) return false;
  return true;
}

}  // namespace zinc_rt::cuda
