// Rotation of heads by a warp, and the table of four-bit codes (kernels/common/kv_rotate.h). Value i of a head is in
// register i / 32 of lane i % 32.
#pragma once

#include "kernels/common/kv_rotate.h"
#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

namespace kv = zinc_rt::kv;

namespace rotated {

constexpr uint32_t kRegisters = kv::kMaxHead / 32;

// Arrays of the host's header are no memory of the device; copies of them are constants.
template <class T, uint32_t kN>
struct Copy {
  T of[kN];
};
template <class T, uint32_t kN>
ZRT_CUDA_HD constexpr Copy<T, kN> copied(const T (&from)[kN]) {
  Copy<T, kN> to{};
  for (uint32_t i = 0; i < kN; ++i) to.of[i] = from[i];
  return to;
}

__device__ __forceinline__ float signed_by(uint32_t r, float x) {
  constexpr auto signs = copied(kv::kSigns);
  return (signs.of[r] >> (threadIdx.x % 32) & 1) != 0 ? -x : x;
}

// H in place, of n = 64, 128 or 256 values.
__device__ __forceinline__ void transform(float (&x)[kRegisters], uint32_t n) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (uint32_t h = 1; h < 32; h *= 2)
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r) {
      if (r * 32 >= n) continue;
      const float other = __shfl_xor_sync(0xFFFFFFFFu, x[r], static_cast<int>(h));
      x[r] = (lane & h) != 0 ? other - x[r] : x[r] + other;
    }
#pragma unroll
  for (uint32_t h = 1; h < kRegisters; h *= 2)
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r) {
      if ((r & h) != 0 || (r + h) * 32 >= n || h * 32 >= n) continue;
      const float a = x[r], b = x[r + h];
      x[r] = a + b;
      x[r + h] = a - b;
    }
}

// y = H(s x).
__device__ __forceinline__ void rotate(const float* x, uint32_t n, float (&y)[kRegisters]) {
#pragma unroll
  for (uint32_t r = 0; r < kRegisters; ++r) y[r] = r * 32 < n ? signed_by(r, x[threadIdx.x % 32 + 32 * r]) : 0.0f;
  transform(y, n);
}
// In place: x = s H(x) * (1 / n).
__device__ __forceinline__ void rotate_back(float (&x)[kRegisters], uint32_t n) {
  transform(x, n);
#pragma unroll
  for (uint32_t r = 0; r < kRegisters; ++r) x[r] = signed_by(r, x[r]) * (1.0f / static_cast<float>(n));
}

// The code of four bits whose table value is nearest, and that value.
__device__ __forceinline__ void nearest(float y, int& code, int& value) {
  constexpr auto table = copied(kv::kTable);
  constexpr auto middles = copied(kv::kMiddles);
  code = 0, value = table.of[0];
#pragma unroll
  for (int i = 0; i < 15; ++i)
    if (middles.of[i] < y) {
      ++code;
      value += table.of[i + 1] - table.of[i];
    }
}

ZRT_CUDA_HD constexpr uint32_t word(const Copy<int8_t, 16>& table, int at) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= static_cast<uint32_t>(static_cast<uint8_t>(table.of[at + i])) << 8 * i;
  return bits;
}

}  // namespace rotated
}  // namespace zinc_rt::cuda
