// What the kernels of attention share: cells as floats, and sums in the order of docs/arithmetic.md, rule 5.
#pragma once

#include "kernels/sm_90/kv.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kChunk = kAttendChunk;  // positions

struct F32Cell {
  static constexpr int kBytes = 4;
  static __device__ float at(const uint8_t* cell, uint32_t i) { return reinterpret_cast<const float*>(cell)[i]; }
  static __device__ float2 pair(const uint8_t* cell, uint32_t i) { return reinterpret_cast<const float2*>(cell)[i]; }
};
struct F16Cell {
  static constexpr int kBytes = 2;
  static __device__ float at(const uint8_t* cell, uint32_t i) {
    return widen_f16(reinterpret_cast<const uint16_t*>(cell)[i]);
  }
  static __device__ float2 pair(const uint8_t* cell, uint32_t i) {
    return widen_f16_pair(reinterpret_cast<const uint32_t*>(cell)[i]);
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

// 16-byte vectors of K or V at the positions [begin, end) of a chunk to rows of shared memory, by kThreads threads.
// head: bytes from a cell to the kv head in it, of which `bytes` are copied.
template <uint32_t kThreads>
__device__ __forceinline__ void stage(uint8_t* tile, uint32_t pitch, const uint8_t* cache, uint64_t page_bytes,
                                      uint64_t cell, uint64_t head, uint32_t bytes, const int32_t* pages,
                                      uint32_t begin, uint32_t end) {
  const uint32_t vectors = bytes / 16;
  for (uint32_t i = threadIdx.x; i < (end - begin) * vectors; i += kThreads) {
    const uint32_t p = begin + i / vectors, at = i % vectors * 16;
    copy_16(tile + p % kChunk * pitch + at,
            cache + static_cast<uint64_t>(pages[p / 16]) * page_bytes + p % 16 * cell + head + at);
  }
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

// The scores of the first n_rows rows of q, `width` floats apart and at most kRows, with a cell of K.
template <class Cell, bool kStaged, int kRows>
__device__ __forceinline__ void scores_of(const push::FlashAttn& c, const uint8_t* k_cell, const float* q,
                                          uint32_t width, uint32_t n_rows, float (&scores)[kRows]) {
  float dot[kRows] = {};
  for (uint32_t g = 0; g < c.head_dim; g += 256) {
    const uint32_t n = min(c.head_dim, g + 256);
    float lanes[kRows][16] = {};
    for (uint32_t i = g; i < n; i += 16) {
      float k[16];
      load_16<Cell, kStaged>(k_cell, i, n, k);
#pragma unroll
      for (int h = 0; h < kRows; ++h)
        if (h < n_rows)
#pragma unroll
          for (int l = 0; l < 16; ++l)
            if (i + l < n) lanes[h][l] = __fmaf_rn(k[l], q[h * width + i + l], lanes[h][l]);
    }
#pragma unroll
    for (int h = 0; h < kRows; ++h) dot[h] = dot[h] + fold(lanes[h]);
  }
#pragma unroll
  for (int h = 0; h < kRows; ++h) {
    scores[h] = dot[h] * c.scale;
    if (c.softcap > 0.0f) scores[h] = c.softcap * exact::tanh(scores[h] * exact::rcp(c.softcap));
  }
}

// QUANTIZE of a warp's values at `at` of row t of y, if the launch has a buffer for it (quantize_warp).
__device__ __forceinline__ void quantize_values(const OpArgs& args, const float (&v)[8], uint32_t t, uint32_t k,
                                                uint32_t at) {
  if (args.buffers[7] == nullptr) return;
  const Q8Rows to = q8_rows(args.buffers[7], args.dim(0), k);
  if (args.symbols[7] == kQ8A256)
    quantize_warp<true>(v, to, t, k, at);
  else
    quantize_warp<false>(v, to, t, k, at);
}

}  // namespace zinc_rt::cuda
