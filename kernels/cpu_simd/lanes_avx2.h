// Defines 16 lanes of floats or integers for AVX2, FMA and F16C. 16 is the lane width of docs/arithmetic.md (rules 4
// and 5) and the number of rows of a panel, so a kernel body written with these lanes has the reference's order of
// sums. lanes_avx512.h, lanes_neon.h and lanes_wasm128.h define the same names. Everything is static and always inlined, because a file
// that includes this is compiled for AVX2, and code for other processors must not use a copy of it.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

// How many sums (Floats) a loop can have at once, besides its operands, without running out of registers.
constexpr int kSums = 4;

struct Floats {  // `lo` holds lanes 0 to 7, `hi` lanes 8 to 15
  __m256 lo, hi;
};
struct Ints {  // holds 16 x i32, or 64 bytes
  __m256i lo, hi;
};

// The following functions operate on floats.

ZRT_SIMD Floats splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
ZRT_SIMD Floats load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
ZRT_SIMD void store(float* p, const Floats& a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
ZRT_SIMD Floats load_f16(const void* p) {
  const auto* at = static_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
}
ZRT_SIMD float f16_to_float(std::uint16_t h) {
  return _cvtsh_ss(h);
}
ZRT_SIMD Floats load_i8(const void* p) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
// Returns p[0], p[stride], ... p[15 * stride].
ZRT_SIMD Floats gather(const float* p, std::int32_t stride) {
  const __m256i at = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(stride));
  return {_mm256_i32gather_ps(p, at, 4), _mm256_i32gather_ps(p + 8 * stride, at, 4)};
}
// Returns the lane numbers 0, 1, ... 15.
ZRT_SIMD Floats lane_index() {
  return {_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), _mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15)};
}

ZRT_SIMD Floats operator+(const Floats& a, const Floats& b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
ZRT_SIMD Floats operator-(const Floats& a, const Floats& b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
ZRT_SIMD Floats operator*(const Floats& a, const Floats& b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
ZRT_SIMD Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
ZRT_SIMD Floats negate(const Floats& a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
// Returns a > b ? a : b, even if one is NaN.
ZRT_SIMD Floats max(const Floats& a, const Floats& b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
// Returns a > b ? x : y.
ZRT_SIMD Floats select_gt(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ)),
          _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ))};
}
// Returns a >= b ? x : y.
ZRT_SIMD Floats select_ge(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ)),
          _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ))};
}
// Returns the largest lane. REQUIRES: none is NaN.
ZRT_SIMD float reduce_max(const Floats& a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}
// Returns the sum of the lanes, in the order of fold16 in kernels/common/fold.h.
ZRT_SIMD float reduce_add(const Floats& a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// The following functions operate on integers.

ZRT_SIMD Ints splat(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
ZRT_SIMD Ints load_ints(const void* p) {
  const auto* at = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
ZRT_SIMD void store(void* p, const Ints& a) {
  auto* at = static_cast<__m256i*>(p);
  _mm256_storeu_si256(at, a.lo);
  _mm256_storeu_si256(at + 1, a.hi);
}
ZRT_SIMD Ints load_u16(const void* p) {  // reads 16 x u16 and widens them
  const auto* at = static_cast<const __m128i*>(p);
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(at)), _mm256_cvtepu16_epi32(_mm_loadu_si128(at + 1))};
}
ZRT_SIMD Ints load_u8(const void* p) {  // reads 16 x u8 and widens them
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}
// Stores each lane as one byte, 16 bytes in all. REQUIRES: each lane fits a signed byte.
ZRT_SIMD void store_i8(void* p, const Ints& a) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xD8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(static_cast<__m128i*>(p), bytes);
}

// Returns the lanes of a and then the lanes of b, as 16 bits each. REQUIRES: each lane fits.
ZRT_SIMD Ints narrow_i16(const Ints& a, const Ints& b) {
  return {_mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xD8),
          _mm256_permute4x64_epi64(_mm256_packs_epi32(b.lo, b.hi), 0xD8)};
}

ZRT_SIMD Ints operator&(const Ints& a, const Ints& b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
ZRT_SIMD Ints operator|(const Ints& a, const Ints& b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
ZRT_SIMD Ints operator^(const Ints& a, const Ints& b) {
  return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
ZRT_SIMD Ints operator+(const Ints& a, const Ints& b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
ZRT_SIMD Ints operator-(const Ints& a, const Ints& b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
ZRT_SIMD Ints operator*(const Ints& a, const Ints& b) {
  return {_mm256_mullo_epi32(a.lo, b.lo), _mm256_mullo_epi32(a.hi, b.hi)};
}
ZRT_SIMD Ints max(const Ints& a, const Ints& b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
ZRT_SIMD Ints add_bytes(const Ints& a, const Ints& b) {
  return {_mm256_add_epi8(a.lo, b.lo), _mm256_add_epi8(a.hi, b.hi)};
}
ZRT_SIMD Ints shift_right(const Ints& a, int bits) {  // fills with zeros
  return {_mm256_srli_epi32(a.lo, bits), _mm256_srli_epi32(a.hi, bits)};
}
ZRT_SIMD Ints shift_right_signed(const Ints& a, int bits) {
  return {_mm256_srai_epi32(a.lo, bits), _mm256_srai_epi32(a.hi, bits)};
}
ZRT_SIMD Ints shift_left(const Ints& a, int bits) {
  return {_mm256_slli_epi32(a.lo, bits), _mm256_slli_epi32(a.hi, bits)};
}
// Shifts each lane of a left by the number of bits in b's lane, which is 0 to 31.
ZRT_SIMD Ints shift_left(const Ints& a, const Ints& b) {
  return {_mm256_sllv_epi32(a.lo, b.lo), _mm256_sllv_epi32(a.hi, b.hi)};
}
// Adds the two 16-bit halves of each lane separately.
ZRT_SIMD Ints add_16(const Ints& a, const Ints& b) {
  return {_mm256_add_epi16(a.lo, b.lo), _mm256_add_epi16(a.hi, b.hi)};
}
ZRT_SIMD Ints shift_left_16(const Ints& a, int bits) {
  return {_mm256_slli_epi16(a.lo, bits), _mm256_slli_epi16(a.hi, bits)};
}
ZRT_SIMD Ints shift_right_signed_16(const Ints& a, int bits) {
  return {_mm256_srai_epi16(a.lo, bits), _mm256_srai_epi16(a.hi, bits)};
}
// Returns, per lane, a if b < c, else 0.
ZRT_SIMD Ints where_less(const Ints& b, const Ints& c, const Ints& a) {
  return {_mm256_and_si256(_mm256_cmpgt_epi32(c.lo, b.lo), a.lo),
          _mm256_and_si256(_mm256_cmpgt_epi32(c.hi, b.hi), a.hi)};
}
// Replaces each byte of `codes` by values[byte]. REQUIRES: the bytes are 0 to 15.
ZRT_SIMD Ints look_up(const Ints& codes, const std::int8_t* values) {
  const __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  return {_mm256_shuffle_epi8(table, codes.lo), _mm256_shuffle_epi8(table, codes.hi)};
}
// Interleaves 16 bytes from each address, so that lane i holds byte i of a, b, c and d.
ZRT_SIMD Ints zip_bytes(const void* a, const void* b, const void* c, const void* d) {
  const auto load_16 = [](const void* p)
                           __attribute__((always_inline)) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
  const auto four = [](__m128i ab, __m128i cd) __attribute__((always_inline)) {
    return _mm256_set_m128i(_mm_unpackhi_epi16(ab, cd), _mm_unpacklo_epi16(ab, cd));
  };
  const __m128i x = load_16(a), y = load_16(b), z = load_16(c), w = load_16(d);
  return {four(_mm_unpacklo_epi8(x, y), _mm_unpacklo_epi8(z, w)),
          four(_mm_unpackhi_epi8(x, y), _mm_unpackhi_epi8(z, w))};
}
// Reads 16 x i16, adds neighbours, and writes the 8 sums.
ZRT_SIMD void add_neighbours(const void* from, void* to) {
  const auto* at = static_cast<const __m128i*>(from);
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm_hadd_epi16(_mm_loadu_si128(at), _mm_loadu_si128(at + 1)));
}
// Multiplies the two signed 16-bit numbers of each lane and adds both products.
ZRT_SIMD Ints dot_pairs(const Ints& a, const Ints& b) {
  return {_mm256_madd_epi16(a.lo, b.lo), _mm256_madd_epi16(a.hi, b.hi)};
}
ZRT_SIMD std::int32_t reduce_max(const Ints& a) {
  const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
}
ZRT_SIMD std::int32_t reduce_add(const Ints& a) {
  const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1)));
}

ZRT_SIMD Floats to_floats(const Ints& a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
ZRT_SIMD Floats as_floats(const Ints& bits) {
  return {_mm256_castsi256_ps(bits.lo), _mm256_castsi256_ps(bits.hi)};
}
ZRT_SIMD Ints as_ints(const Floats& a) {
  return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}

// A Part is one register of floats, for loops that must count registers. Part p holds lanes 8 p to 8 p + 7.

using Part = __m256;
constexpr int kParts = 2, kPartLanes = 8;
ZRT_SIMD Part& part(Floats& x, int p) {
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
// Keeps a value in a register for several uses. Otherwise GCC would read memory again for each use.
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

// An IntPart is one register of integers.

using IntPart = __m256i;
ZRT_SIMD IntPart& part(Ints& x, int p) {
  return p == 0 ? x.lo : x.hi;
}
ZRT_SIMD IntPart load_int_part(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
ZRT_SIMD IntPart splat_int_part(std::int32_t x) {
  return _mm256_set1_epi32(x);
}
ZRT_SIMD IntPart hold(IntPart x) {
  asm("" : "+x"(x));
  return x;
}
// Returns sum + dot_pairs(a, b). It is written in assembly, because GCC 12 otherwise spills the sums or copies them at
// each use.
ZRT_SIMD IntPart add_dot_pairs(IntPart sum, IntPart a, IntPart b) {
#if defined(__AVXVNNI__)
  return hold(_mm256_dpwssd_avx_epi32(sum, a, b));
#else
  IntPart product;
  asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(a), "x"(b));
  return sum;
#endif
}

// LanePairs holds 32 floats as 16 pairs: the first of each pair, and the second of each pair.

struct LanePairs {
  Floats first, second;
};
template <int kMask>
ZRT_SIMD __m256 every_other(const float* p) {
  const __m256 both = _mm256_shuffle_ps(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8), kMask);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(both), 0xD8));
}
ZRT_SIMD LanePairs load_pairs(const float* p) {
  return {{every_other<0x88>(p), every_other<0x88>(p + 16)}, {every_other<0xDD>(p), every_other<0xDD>(p + 16)}};
}
ZRT_SIMD void store_pairs(float* p, const LanePairs& x) {
  const auto put = [](float* at, __m256 a, __m256 b) __attribute__((always_inline)) {
    const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
    _mm256_storeu_ps(at, _mm256_permute2f128_ps(low, high, 0x20));
    _mm256_storeu_ps(at + 8, _mm256_permute2f128_ps(low, high, 0x31));
  };
  put(p, x.first.lo, x.second.lo);
  put(p + 16, x.first.hi, x.second.hi);
}

// The following functions compute fold16 of kernels/common/fold.h for eight sums at once. Each sum has the same tree:
// lanes l and l + 8 are added, then l and l + 4, then l + 2, then l + 1.

// Holds two of the eight sums, j and j + 4, after the first two steps of the fold, after which each sum is spread over
// four lanes.
struct Pair {
  __m256 lanes;
};
ZRT_SIMD Pair fold_pair(const Floats& a, const Floats& b) {
  const __m256 a8 = _mm256_add_ps(a.lo, a.hi), b8 = _mm256_add_ps(b.lo, b.hi);
  return {_mm256_add_ps(_mm256_blend_ps(a8, b8, 0xF0), _mm256_permute2f128_ps(a8, b8, 0x21))};
}
// Computes y[j] = y[j] + sum j, for j < 8. pairs[j] holds sums j and j + 4.
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
