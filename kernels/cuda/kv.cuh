// Cells of the paged cache: page = page_table[slot][pos / 16], cell = pos % 16.
#pragma once

#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

__device__ __forceinline__ uint64_t cell_bytes(uint32_t type, uint64_t n) {
  return type == kCacheF32 ? 4 * n : type == kCacheF16 ? 2 * n : n / 32 * 34;
}

// Values [first, first + n) of a row to its cell, by n_threads threads; q8_0: whole blocks of 32, each by a thread.
__device__ inline void store_cell(const float* values, uint8_t* cell, uint32_t first, uint32_t n, uint32_t type,
                                  uint32_t thread, uint32_t n_threads) {
  if (type == kCacheF32) {
    for (uint32_t i = thread; i < n; i += n_threads) reinterpret_cast<float*>(cell)[first + i] = values[i];
    return;
  }
  if (type == kCacheF16) {
    for (uint32_t i = thread; i < n; i += n_threads)
      reinterpret_cast<uint16_t*>(cell)[first + i] = f32_to_f16(values[i]);
    return;
  }
  for (uint32_t b = thread; b < n / 32; b += n_threads) {
    const float* x = values + b * 32;
    float amax = 0.0f, finite = 0.0f;
    for (int i = 0; i < 32; ++i) {
      const float a = x[i] < 0 ? -x[i] : x[i];
      amax = a > amax ? a : amax;
      finite = finite + x[i] * 0.0f;
    }
    uint16_t d = f32_to_f16(amax * (1.0f / 127.0f));
    const bool is_nan = finite != 0.0f || d == 0x7c00u;
    if (is_nan) d = 0x7e00u;
    const bool usable = !is_nan && d != 0;
    const float inverse = usable ? exact::rcp(f16_to_f32(d)) : 0.0f;
    uint8_t* block = cell + (first / 32 + b) * 34;
    *reinterpret_cast<uint16_t*>(block) = d;
    for (int i = 0; i < 32; ++i) {
      const float q = usable ? exact::round_int(x[i] * inverse) : 0.0f;
      block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q));
    }
  }
}

}  // namespace zinc_rt::cuda
