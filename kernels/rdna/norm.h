// The float dot of docs/arithmetic.md, rule 4, of rows in memory.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

// Of up to 256 values, by half a wave, a lane those of one k mod 16; all its lanes get it.
template <class Product>
ZRT_DEVICE float half_wave_dot(uint32_t n, const Product& add) {
  float sum = 0.0f;
  for (uint32_t i = thread() % 16; i < n; i += 16) sum = add(i, sum);
  return fold_half(sum);
}

// Of n values by a workgroup of kThreads: its half waves have the groups of 256, whose sums are then added in order.
// All threads get it. parts: a float a group, at most kMostParts.
constexpr uint32_t kMostParts = 1024;
template <uint32_t kThreads>
ZRT_DEVICE float workgroup_dot(const float* a, const float* b, uint32_t n, float* parts) {
  const uint32_t n_parts = (n + 255) / 256;
  for (uint32_t p = thread() / 16; p < n_parts; p += kThreads / 16) {
    const uint32_t first = p * 256, size = n - first < 256 ? n - first : 256;
    const float sum =
        half_wave_dot(size, [&](uint32_t i, float acc) { return __builtin_fmaf(a[first + i], b[first + i], acc); });
    if (thread() % 16 == 0) parts[p] = sum;
  }
  workgroup_barrier();
  float sum = 0.0f;
  for (uint32_t p = 0; p < n_parts; ++p) sum = sum + parts[p];
  return sum;
}

// Of n values by a wave; all lanes get it.
template <class A, class B>
ZRT_DEVICE float wave_dot(const A& a, const B& b, uint32_t n) {
  const uint32_t half = thread() % kWave / 16;
  float acc = 0.0f;
  for (uint32_t first = 0; first < n; first += 512) {
    const uint32_t mine = first + half * 256, size = mine < n ? (n - mine < 256 ? n - mine : 256) : 0;
    const float sum =
        half_wave_dot(size, [&](uint32_t i, float v) { return __builtin_fmaf(a(mine + i), b(mine + i), v); });
    acc = acc + from_lane(sum, 0);
    if (first + 256 < n) acc = acc + from_lane(sum, 16);
  }
  return acc;
}

}  // namespace zinc_rt::rdna
