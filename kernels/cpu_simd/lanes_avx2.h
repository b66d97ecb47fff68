// 16 float lanes for AVX2, FMA and F16C: the lane width of docs/arithmetic.md (rules 4 and 5), so that a body written
// over them has the reference's order. A header for another instruction set gives the same names. Everything is static
// and always inlined: a file that includes this is compiled for AVX2, and no copy may serve code that is not.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

struct Lanes {
  __m256 lo, hi;  // lanes 0..7, 8..15
};
struct Ints {
  __m256i lo, hi;
};

ZRT_SIMD Lanes set1(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
ZRT_SIMD Lanes load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
ZRT_SIMD void store(float* p, Lanes x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
ZRT_SIMD Lanes load_f16(const void* p) {
  const auto* at = static_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
}
ZRT_SIMD float f16_to_float(std::uint16_t h) {
  return _cvtsh_ss(h);
}
ZRT_SIMD Lanes load_i8(const void* p) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
// p[0], p[stride] .. p[15 * stride]
ZRT_SIMD Lanes gather(const float* p, std::int32_t stride) {
  const __m256i at = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(stride));
  return {_mm256_i32gather_ps(p, at, 4), _mm256_i32gather_ps(p + 8 * stride, at, 4)};
}

// What one register holds, for loops that must count registers: lanes 8 p to 8 p + 7.
using Part = __m256;
constexpr int kParts = 2, kPartLanes = 8;
ZRT_SIMD Part& part(Lanes& x, int p) {
  return p == 0 ? x.lo : x.hi;
}
ZRT_SIMD Part load_part(const float* p) {
  return _mm256_loadu_ps(p);
}
ZRT_SIMD Part load_part_f16(const void* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
ZRT_SIMD Part load_part_bf16(const void* p) {
  const __m256i halves = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(halves, 16));
}
// Loaded once for several uses: GCC would read memory again for each.
ZRT_SIMD Part hold(Part x) {
  asm("" : "+x"(x));
  return x;
}
ZRT_SIMD void store_part(float* p, Part x) {
  _mm256_storeu_ps(p, x);
}
ZRT_SIMD Part fma_part(Part a, Part b, Part c) {
  return _mm256_fmadd_ps(a, b, c);
}

// 0, 1 .. 15
ZRT_SIMD Lanes lane_index() {
  return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15)};
}

ZRT_SIMD Lanes add(Lanes a, Lanes b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
ZRT_SIMD Lanes sub(Lanes a, Lanes b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
ZRT_SIMD Lanes mul(Lanes a, Lanes b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
ZRT_SIMD Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
ZRT_SIMD Lanes negate(Lanes a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
// a > b ? a : b, also where one is NaN.
ZRT_SIMD Lanes max(Lanes a, Lanes b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
// a > b ? x : y
ZRT_SIMD Lanes select_gt(Lanes a, Lanes b, Lanes x, Lanes y) {
  return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
          _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))};
}
// a >= b ? x : y
ZRT_SIMD Lanes select_ge(Lanes a, Lanes b, Lanes x, Lanes y) {
  return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ)),
          _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ))};
}

ZRT_SIMD Ints ints(std::int32_t n) {
  return {_mm256_set1_epi32(n), _mm256_set1_epi32(n)};
}
ZRT_SIMD Ints bits(Lanes x) {
  return {_mm256_castps_si256(x.lo), _mm256_castps_si256(x.hi)};
}
ZRT_SIMD Lanes from_bits(Ints x) {
  return {_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)};
}
ZRT_SIMD Ints add(Ints a, Ints b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
ZRT_SIMD Ints sub(Ints a, Ints b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
template <int kCount>
ZRT_SIMD Ints shift_left(Ints a) {
  return {_mm256_slli_epi32(a.lo, kCount), _mm256_slli_epi32(a.hi, kCount)};
}
template <int kCount>
ZRT_SIMD Ints shift_right(Ints a) {  // keeps the sign
  return {_mm256_srai_epi32(a.lo, kCount), _mm256_srai_epi32(a.hi, kCount)};
}

template <int kCount>
ZRT_SIMD Ints shift_right_logical(Ints a) {
  return {_mm256_srli_epi32(a.lo, kCount), _mm256_srli_epi32(a.hi, kCount)};
}
ZRT_SIMD Ints bit_and(Ints a, Ints b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
ZRT_SIMD Ints max(Ints a, Ints b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
ZRT_SIMD std::int32_t reduce_max(Ints a) {
  const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
}
ZRT_SIMD std::int32_t reduce_add(Ints a) {
  const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
}
// 16 bytes of integers that a signed byte holds.
ZRT_SIMD void store_i8(void* p, Ints a) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xD8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(static_cast<__m128i*>(p), bytes);
}

// 32 floats as 16 pairs: the first of each, the second of each.
struct LanePairs {
  Lanes first, second;
};
template <int kMask>
ZRT_SIMD __m256 every_other(const float* p) {
  const __m256 both = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), kMask);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(both), 0xD8));
}
ZRT_SIMD LanePairs load_pairs(const float* p) {
  return {{every_other<0x88>(p), every_other<0x88>(p + 16)}, {every_other<0xDD>(p), every_other<0xDD>(p + 16)}};
}
ZRT_SIMD void store_pairs(float* p, LanePairs x) {
  const auto put = [](float* at, __m256 a, __m256 b) __attribute__((always_inline)) {
    const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
    _mm256_storeu_ps(at, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(at + 8, _mm256_permute2f128_ps(low, high, 0x31));
  };
  put(p, x.first.lo, x.second.lo);
  put(p + 16, x.first.hi, x.second.hi);
}

// fold16 of kernels/common/fold.h for eight sums at once, each tree the same: lanes l and l + 8 are added, then l + 4,
// l + 2 and l + 1. A Pair holds sums j and j + 4 after the first two steps.
struct Pair {
  __m256 lanes;  // four of sum j, four of sum j + 4
};
ZRT_SIMD Pair fold_pair(Lanes a, Lanes b) {
  const __m256 a8 = _mm256_add_ps(a.lo, a.hi), b8 = _mm256_add_ps(b.lo, b.hi);
  return {_mm256_add_ps(_mm256_blend_ps(a8, b8, 0xF0), _mm256_permute2f128_ps(a8, b8, 0x21))};
}
// y[j] = y[j] + sum j, for j < 8; pairs[j] holds sums j and j + 4.
ZRT_SIMD void add_folds(const Pair* pairs, float* y) {
  const auto two = [](__m256 a, __m256 b) __attribute__((always_inline)) {
    return _mm256_add_ps(_mm256_blend_ps(a, b, 0xCC), _mm256_shuffle_ps(a, b, 0x4E));
  };
  const __m256 a = two(pairs[0].lanes, pairs[1].lanes), b = two(pairs[2].lanes, pairs[3].lanes);
  const __m256 sums = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xDD));
  _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), sums));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
