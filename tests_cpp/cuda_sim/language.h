// CUDA C++ for a host compiler: the words that kernels/cuda use, included before each of its files.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_sim/workgroup.h"

#define __CUDACC__ 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// Workgroups run one after another, so one copy serves them all.
#define __shared__ static

#define threadIdx (::cuda_sim::here.thread)
#define blockIdx (::cuda_sim::here.block)
#define blockDim (::cuda_sim::here.block_dim)
#define gridDim (::cuda_sim::here.grid_dim)

struct alignas(8) uint2 {
  std::uint32_t x, y;
};
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint4 make_uint4(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t w) {
  return {x, y, z, w};
}
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}

using std::max;
using std::min;

inline float __fmaf_rn(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline std::uint32_t __float_as_uint(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline float __uint_as_float(std::uint32_t x) {
  return std::bit_cast<float>(x);
}
inline float __int_as_float(std::int32_t x) {
  return std::bit_cast<float>(x);
}
inline int __popc(std::uint32_t x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcv(const T* at) {
  return *at;
}
inline void __threadfence_system() {}

// Byte i of the result is byte (sel >> 4 i & 7) of the eight of b:a; of all ones or zeros by its sign with bit 3.
inline std::uint32_t __byte_perm(std::uint32_t a, std::uint32_t b, std::uint32_t sel) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes >> (8 * (sel >> (4 * i) & 7)));
    const std::uint8_t picked = (sel >> (4 * i) & 8) != 0 ? (byte >> 7) * 0xFF : byte;
    result |= static_cast<std::uint32_t>(picked) << (8 * i);
  }
  return result;
}
// Four signed bytes of a by those of b.
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
  return c;
}
// Two 16-bit numbers of a by two bytes of b, the lower or the upper ones, all signed.
inline int __dp2a_lo(int a, int b, int c) {
  return c + static_cast<std::int16_t>(a) * static_cast<std::int8_t>(b) +
         static_cast<std::int16_t>(a >> 16) * static_cast<std::int8_t>(b >> 8);
}
inline int __dp2a_hi(int a, int b, int c) {
  return __dp2a_lo(a, b >> 16, c);
}

// Fibers change only at meetings, so a plain read and write is one step.
template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = was + value;
  return was;
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = std::min(was, value);
  return was;
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = std::max(was, value);
  return was;
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  const T was = *at;
  *at = was | value;
  return was;
}

inline void __syncthreads() {
  cuda_sim::sync_threads();
}
inline void __syncwarp(std::uint32_t mask = 0xFFFFFFFFu) {
  cuda_sim::exchange(mask, {});
}
namespace cuda_sim {
// What lane `from` of the mask brought.
template <class T>
T shuffle(std::uint32_t mask, T own, std::uint32_t from) {
  static_assert(sizeof(T) == 4);
  const Words* words = exchange(mask, {{std::bit_cast<std::uint32_t>(own)}});
  if ((mask >> from & 1) == 0) stop("a shuffle from a lane outside its mask");
  return std::bit_cast<T>(words[from].w[0]);
}
}  // namespace cuda_sim
template <class T>
T __shfl_xor_sync(std::uint32_t mask, T own, int bits) {
  return cuda_sim::shuffle(mask, own, (threadIdx.x % 32) ^ static_cast<std::uint32_t>(bits));
}
template <class T>
T __shfl_up_sync(std::uint32_t mask, T own, unsigned by) {
  const std::uint32_t lane = threadIdx.x % 32;
  return cuda_sim::shuffle(mask, own, lane >= by ? lane - by : lane);
}
template <class T>
T __shfl_sync(std::uint32_t mask, T own, int from) {
  return cuda_sim::shuffle(mask, own, static_cast<std::uint32_t>(from) % 32);
}
inline std::uint32_t __match_any_sync(std::uint32_t mask, std::uint32_t own) {
  const auto* words = cuda_sim::exchange(mask, {{own}});
  std::uint32_t same = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && words[lane].w[0] == own) same |= 1u << lane;
  return same;
}
// Over the lanes of the mask.
template <class F>
std::uint32_t reduce(std::uint32_t mask, std::uint32_t own, const F& f) {
  const auto* words = cuda_sim::exchange(mask, {{own}});
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0) own = f(own, words[lane].w[0]);
  return own;
}
inline std::uint32_t __reduce_max_sync(std::uint32_t mask, std::uint32_t own) {
  return reduce(mask, own, [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
}
inline std::uint32_t __reduce_min_sync(std::uint32_t mask, std::uint32_t own) {
  return reduce(mask, own, [](std::uint32_t a, std::uint32_t b) { return std::min(a, b); });
}
inline std::uint32_t __ballot_sync(std::uint32_t mask, int own) {
  const auto* words = cuda_sim::exchange(mask, {{own != 0 ? 1u : 0u}});
  std::uint32_t set = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0 && words[lane].w[0] != 0) set |= 1u << lane;
  return set;
}
