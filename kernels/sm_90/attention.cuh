// What the kernels of attention share: cells as floats, and sums in the order of docs/arithmetic.md, rule 5.
#pragma once

#include "kernels/sm_90/kv.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kChunk = 128;  // positions

struct F32Cell {
  static constexpr int kBytes = 4;
  static __device__ float at(const uint8_t* cell, uint32_t i) { return reinterpret_cast<const float*>(cell)[i]; }
};
struct F16Cell {
  static constexpr int kBytes = 2;
  static __device__ float at(const uint8_t* cell, uint32_t i) {
    return widen_f16(reinterpret_cast<const uint16_t*>(cell)[i]);
  }
};
struct Q8Cell {
  static constexpr int kBytes = 1;  // not staged
  static __device__ float at(const uint8_t* cell, uint32_t i) {
    const uint8_t* block = cell + i / 32 * 34;
    return zinc_rt::f16_to_f32(*reinterpret_cast<const uint16_t*>(block)) *
           static_cast<float>(static_cast<int8_t>(block[2 + i % 32]));
  }
};

__device__ __forceinline__ uint32_t first_seen(uint32_t window, uint32_t pos) {
  return window > 0 && pos >= window ? pos - window + 1 : 0;
}

// 16 values of K from i on.
template <class Cell, bool kStaged>
__device__ __forceinline__ void load_16(const uint8_t* cell, uint32_t i, uint32_t n, float (&k)[16]) {
  if constexpr (kStaged) {
    if (i + 16 <= n) {  // whole vectors
      constexpr int kVectors = Cell::kBytes;
      uint4 v[kVectors];
#pragma unroll
      for (int p = 0; p < kVectors; ++p) v[p] = reinterpret_cast<const uint4*>(cell + i * Cell::kBytes)[p];
#pragma unroll
      for (int l = 0; l < 16; ++l) k[l] = Cell::at(reinterpret_cast<const uint8_t*>(v), l);
      return;
    }
  }
#pragma unroll
  for (int l = 0; l < 16; ++l) k[l] = i + l < n ? Cell::at(cell, i + l) : 0.0f;
}

// The fold of 16 lanes in registers.
__device__ __forceinline__ float fold(const float (&lane)[16]) {
  float v[8];
#pragma unroll
  for (int l = 0; l < 8; ++l) v[l] = lane[l] + lane[l + 8];
#pragma unroll
  for (int l = 0; l < 4; ++l) v[l] = v[l] + v[l + 4];
  v[0] = v[0] + v[2], v[1] = v[1] + v[3];
  return v[0] + v[1];
}

}  // namespace zinc_rt::cuda
