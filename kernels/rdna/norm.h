// Computes the float dot of rule 4 (docs/arithmetic.md): the products of each group of 256 values are added in 16
// partial sums by index mod 16, these are folded, and the groups' sums are added in order.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

// Returns the sum of one group of n <= 256 products to all lanes of a half wave. add(i, sum) returns `sum` with the
// i-th product added by fma. Lane l of the half adds the products with i mod 16 = l.
template <class Product>
ZRT_DEVICE float half_wave_dot(uint32_t n, const Product& add) {
  float sum = 0.0f;
  for (uint32_t i = thread() % 16; i < n; i += 16) sum = add(i, sum);
  return fold_half(sum);
}

// Returns the dot of a and b, of n values, to all threads of a workgroup of kThreads threads. Its half waves share the
// groups. Then each thread adds the groups' sums in order. parts: LDS for one float per group, at most kMostParts.
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

// Returns the dot of n values a(i) and b(i) to all lanes of a wave. The two halves of the wave take the groups in turn.
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
