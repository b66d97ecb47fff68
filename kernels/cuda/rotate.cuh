// The rotation of a head of K, V or q by a warp, for the KV cache types k8v4 and k4v4, and the table of their four-bit
// codes (kernels/common/kv_rotate.h). Value i of a head is in register i / 32 of GPU lane i % 32.
#pragma once

#include "kernels/common/kv_rotate.h"
#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

namespace kv = zinc_rt::kv;

namespace rotated {

constexpr uint32_t kRegisters = kv::kMaxHead / 32;

// Copies an array of a host header into a constant of the device. Device code can use a constexpr value of such an
// array, but cannot read the array itself, which is in host memory.
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

// Returns x with the sign s of value threadIdx % 32 + 32 * r of a head.
__device__ __forceinline__ float signed_by(uint32_t r, float x) {
  constexpr auto signs = copied(kv::kSigns);
  return (signs.of[r] >> (threadIdx.x % 32) & 1) != 0 ? -x : x;
}

// Returns x[i] where i is not known at compile time. A plain index would put the array into local memory.
__device__ __forceinline__ float register_of(const float (&x)[kRegisters], uint32_t i) {
  float value = x[0];
#pragma unroll
  for (uint32_t r = 1; r < kRegisters; ++r) value = r == i ? x[r] : value;
  return value;
}

// The loops of the following functions are not all unrolled, because code that runs once per launch must be fetched
// from memory, which takes longer than running it.

// Applies H (docs/arithmetic.md, rule 5) to n = 64, 128 or 256 values in place.
__device__ __forceinline__ void transform(float (&x)[kRegisters], uint32_t n) {
  const uint32_t lane = threadIdx.x % 32;
#pragma unroll 1
  for (uint32_t h = 1; h < 32; h *= 2)
#pragma unroll
    for (uint32_t r = 0; r < kRegisters; ++r) {
      if (r * 32 >= n) continue;
      const float other = __shfl_xor_sync(0xFFFFFFFFu, x[r], static_cast<int>(h));
      x[r] = other + ((lane & h) != 0 ? -x[r] : x[r]);
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

// Computes y = H(s x): n values of x, in memory, become registers of the warp.
__device__ __forceinline__ void rotate(const float* x, uint32_t n, float (&y)[kRegisters]) {
#pragma unroll
  for (uint32_t r = 0; r < kRegisters; ++r) y[r] = r * 32 < n ? signed_by(r, x[threadIdx.x % 32 + 32 * r]) : 0.0f;
  transform(y, n);
}
// Returns 1 / n for a power of two n.
__device__ __forceinline__ float inverse_of(uint32_t n) {
  return __uint_as_float(0x7F000000u - __float_as_uint(static_cast<float>(n)));
}
// Computes x = s H(x) * (1 / n) in place, the inverse of rotate().
__device__ __forceinline__ void rotate_back(float (&x)[kRegisters], uint32_t n) {
  transform(x, n);
#pragma unroll
  for (uint32_t r = 0; r < kRegisters; ++r) x[r] = signed_by(r, x[r]) * inverse_of(n);
}

// Returns four values of the table, from number `at` on, as a word.
ZRT_CUDA_HD constexpr uint32_t word(const Copy<int8_t, 16>& table, int at) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) bits |= static_cast<uint32_t>(static_cast<uint8_t>(table.of[at + i])) << 8 * i;
  return bits;
}

// Whether both tables are symmetric, which nearest() relies on.
constexpr bool is_symmetric(const Copy<int8_t, 16>& table, const Copy<float, 15>& middles) {
  bool is = true;
  for (uint32_t i = 0; i < 16; ++i) is = is && table.of[i] == -table.of[15 - i];
  for (uint32_t i = 0; i < 15; ++i) is = is && middles.of[i] == -middles.of[14 - i];
  return is;
}
static_assert(is_symmetric(copied(kv::kTable), copied(kv::kMiddles)));

// nearest() returns the four-bit code whose table value is nearest to y, and that value. The table and the middles
// between its values are symmetric, so only magnitudes are compared. A y that is exactly on a middle belongs to the
// lower code; that is why 1 is added to the magnitude of numbers that are not positive.
struct Nearest {
  int code, value;
};
__device__ __forceinline__ Nearest nearest(float y) {
  constexpr auto table = copied(kv::kTable);
  constexpr auto middles = copied(kv::kMiddles);
  const bool is_upper = y > 0.0f;
  // The bits of magnitudes, read as integers, have the order of the magnitudes.
  const auto bits = [](float x) { return static_cast<int>(__float_as_uint(x)); };
  const int magnitude = bits(y < 0.0f ? -y : y) + (is_upper ? 0 : 1);
  int n = 0;
#pragma unroll
  for (int i = 8; i < 15; ++i) n += magnitude > bits(middles.of[i]) ? 1 : 0;
  const int value = static_cast<int>(__byte_perm(word(table, 8), word(table, 12), static_cast<uint32_t>(n)) & 0xFF);
  return {is_upper ? 8 + n : 7 - n, is_upper ? value : -value};
}

}  // namespace rotated
}  // namespace zinc_rt::cuda
