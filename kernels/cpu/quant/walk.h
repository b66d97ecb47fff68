// Defines the loops over k that all formats of a kind share (docs/arithmetic.md, rules 3 and 4). Everything here is
// inlined into the format's ZRT_MULTIVERSION function, so that it is compiled for that function's instruction set.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/act_q8.h"
#include "kernels/common/fold.h"
#include "kernels/common/half.h"

#define ZRT_INLINE static inline __attribute__((always_inline))

// Prevents GCC from unrolling a loop of 16 completely before its vectorizer sees it, because the vectorizer then skips
// it.
#if defined(__GNUC__) && !defined(__clang__)
#define ZRT_ROLLED _Pragma("GCC unroll 1")
#else
#define ZRT_ROLLED
#endif

namespace zinc_rt::cpu {

constexpr std::int64_t kGroup = 256;
constexpr int kLanes = 16;

// Returns the sum of kCount products. It is exact in any order, because |a| <= 128 and |b| <= 128.
template <int kCount>
ZRT_INLINE std::int32_t dot_i8(const std::int8_t* a, const std::int8_t* b) {
  std::int32_t sum = 0;
  ZRT_ROLLED
  for (int i = 0; i < kCount; ++i) sum += static_cast<std::int32_t>(a[i]) * b[i];
  return sum;
}

// Returns the dot product of a weight row of k values in a K-quant format with a row of activations. Each group of 256
// values is one block of weights. For groups ascending, v = kGroupDot(block, activations), then acc = fma(v, d_x, acc).
template <class Block, float (*kGroupDot)(const Block&, const ActBlockQ8A256&)>
ZRT_INLINE float dot_k_groups(const void* row, const void* act, std::int64_t k) {
  const auto* block = static_cast<const Block*>(row);
  const auto* x = static_cast<const ActBlockQ8A256*>(act);
  float acc = 0;
  for (std::int64_t g = 0; g < k / kGroup; ++g) acc = std::fma(kGroupDot(block[g], x[g]), x[g].d, acc);
  return acc;
}

// Returns the dot product of a weight row of k values with a row of activations. Both rows are quantized in blocks of
// 32 values, and 8 blocks are a group. In each group v begins at 0, and for blocks ascending v = kBlockDot(block,
// activations, v). For groups ascending, acc = acc + v.
template <class Block, float (*kBlockDot)(const Block&, const ActBlockQ8A32&, float)>
ZRT_INLINE float dot_32_blocks(const void* row, const void* act, std::int64_t k) {
  const auto* block = static_cast<const Block*>(row);
  const auto* x = static_cast<const ActBlockQ8A32*>(act);
  constexpr std::int64_t kBlocksAGroup = kGroup / 32;
  const std::int64_t n_blocks = k / 32;
  float acc = 0;
  for (std::int64_t first = 0; first < n_blocks; first += kBlocksAGroup) {
    const std::int64_t end = first + kBlocksAGroup < n_blocks ? first + kBlocksAGroup : n_blocks;
    float v = 0;
    for (std::int64_t b = first; b < end; ++b) v = kBlockDot(block[b], x[b], v);
    acc = acc + v;
  }
  return acc;
}

// Returns the dot product of one group of n <= 256 floats. Sixteen lanes hold partial sums. Lane l begins at +0 and
// adds w[i] * x[i], by fma, for ascending i with i mod 16 = l. A lane without elements stays +0. kernels/common/fold.h
// adds up the lanes.
ZRT_INLINE float dot_float_group(const float* w, const float* x, std::int64_t n) {
  float lane[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] = std::fma(w[i + l], x[i + l], lane[l]);
  for (int l = 0; i + l < n; ++l) lane[l] = std::fma(w[i + l], x[i + l], lane[l]);
  return fold16(lane);
}

template <class Element, float (*kToFloat)(Element)>
ZRT_INLINE float dot_float_groups(const void* row, const void* act, std::int64_t k) {
  const auto* w = static_cast<const Element*>(row);
  const auto* x = static_cast<const float*>(act);
  float acc = 0;
  for (std::int64_t first = 0; first < k; first += kGroup) {
    const std::int64_t n = k - first < kGroup ? k - first : kGroup;
    float wide[kGroup];
    for (std::int64_t i = 0; i < n; ++i) wide[i] = kToFloat(w[first + i]);
    acc = acc + dot_float_group(wide, x + first, n);
  }
  return acc;
}

}  // namespace zinc_rt::cpu
