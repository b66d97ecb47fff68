// Defines 16 lanes of floats or integers for AVX-512 (F, BW, VL, DQ; with FMA and F16C), with the names of
// lanes_avx2.h. 16 lanes are one register. Everything is static and always inlined, because a file that includes this
// is compiled for AVX-512, and code for other processors must not use a copy of it.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

// A loop may sum into this many Floats at once, besides its operands, without running out of registers.
constexpr int kSums = 16;

struct Floats {
  __m512 v;
};
struct Ints {  // holds 16 x i32, or 64 bytes
  __m512i v;
};

// The following functions operate on floats.

ZRT_SIMD Floats splat(float x) {
  return {_mm512_set1_ps(x)};
}
ZRT_SIMD Floats load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
ZRT_SIMD void store(float* p, const Floats& a) {
  _mm512_storeu_ps(p, a.v);
}
ZRT_SIMD Floats load_f16(const void* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
ZRT_SIMD float f16_to_float(std::uint16_t h) {
  return _cvtsh_ss(h);
}
ZRT_SIMD Floats load_i8(const void* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))))};
}
ZRT_SIMD __m512i lane_numbers() {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
// Returns p[0], p[stride], ... p[15 * stride].
ZRT_SIMD Floats gather(const float* p, std::int32_t stride) {
  return {_mm512_i32gather_ps(_mm512_mullo_epi32(lane_numbers(), _mm512_set1_epi32(stride)), p, 4)};
}
// Returns the lane numbers 0, 1, ... 15.
ZRT_SIMD Floats lane_index() {
  return {_mm512_cvtepi32_ps(lane_numbers())};
}

ZRT_SIMD Floats operator+(const Floats& a, const Floats& b) {
  return {_mm512_add_ps(a.v, b.v)};
}
ZRT_SIMD Floats operator-(const Floats& a, const Floats& b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
ZRT_SIMD Floats operator*(const Floats& a, const Floats& b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
ZRT_SIMD Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
ZRT_SIMD Floats negate(const Floats& a) {
  return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(INT32_MIN)))};
}
// Returns a > b ? a : b, even if one is NaN.
ZRT_SIMD Floats max(const Floats& a, const Floats& b) {
  return {_mm512_max_ps(a.v, b.v)};
}
// Returns a > b ? x : y.
ZRT_SIMD Floats select_gt(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ), y.v, x.v)};
}
// Returns a >= b ? x : y.
ZRT_SIMD Floats select_ge(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ), y.v, x.v)};
}
// Returns the largest lane. REQUIRES: none is NaN.
ZRT_SIMD float reduce_max(const Floats& a) {
  return _mm512_reduce_max_ps(a.v);
}
// Returns the sum of the lanes, in the order of fold16 in kernels/common/fold.h.
ZRT_SIMD float reduce_add(const Floats& a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// The following functions operate on integers.

ZRT_SIMD Ints splat(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
ZRT_SIMD Ints load_ints(const void* p) {
  return {_mm512_loadu_si512(p)};
}
ZRT_SIMD void store(void* p, const Ints& a) {
  _mm512_storeu_si512(p, a.v);
}
ZRT_SIMD Ints load_u16(const void* p) {  // reads 16 x u16 and widens them
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
ZRT_SIMD Ints load_u8(const void* p) {  // reads 16 x u8 and widens them
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
}
// Stores each lane as one byte, 16 bytes in all. REQUIRES: each lane fits a signed byte.
ZRT_SIMD void store_i8(void* p, const Ints& a) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}

// Returns the lanes of a and then those of b as 16 bits each. REQUIRES: each lane fits.
ZRT_SIMD Ints narrow_i16(const Ints& a, const Ints& b) {
  const __m512i quarters = _mm512_packs_epi32(a.v, b.v);  // `quarters` holds four lanes of a, four of b, four of a, ...
  return {_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), quarters)};
}

ZRT_SIMD Ints operator&(const Ints& a, const Ints& b) {
  return {_mm512_and_si512(a.v, b.v)};
}
ZRT_SIMD Ints operator|(const Ints& a, const Ints& b) {
  return {_mm512_or_si512(a.v, b.v)};
}
ZRT_SIMD Ints operator^(const Ints& a, const Ints& b) {
  return {_mm512_xor_si512(a.v, b.v)};
}
ZRT_SIMD Ints operator+(const Ints& a, const Ints& b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
ZRT_SIMD Ints operator-(const Ints& a, const Ints& b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
ZRT_SIMD Ints operator*(const Ints& a, const Ints& b) {
  return {_mm512_mullo_epi32(a.v, b.v)};
}
ZRT_SIMD Ints max(const Ints& a, const Ints& b) {
  return {_mm512_max_epi32(a.v, b.v)};
}
ZRT_SIMD Ints add_bytes(const Ints& a, const Ints& b) {
  return {_mm512_add_epi8(a.v, b.v)};
}
ZRT_SIMD Ints shift_right(const Ints& a, int bits) {  // fills with zeros
  return {_mm512_srli_epi32(a.v, static_cast<unsigned>(bits))};
}
ZRT_SIMD Ints shift_right_signed(const Ints& a, int bits) {
  return {_mm512_srai_epi32(a.v, static_cast<unsigned>(bits))};
}
ZRT_SIMD Ints shift_left(const Ints& a, int bits) {
  return {_mm512_slli_epi32(a.v, static_cast<unsigned>(bits))};
}
// Shifts each lane of a left by the number of bits in b's lane, which is 0 to 31.
ZRT_SIMD Ints shift_left(const Ints& a, const Ints& b) {
  return {_mm512_sllv_epi32(a.v, b.v)};
}
// Adds the two 16-bit halves of each lane separately.
ZRT_SIMD Ints add_16(const Ints& a, const Ints& b) {
  return {_mm512_add_epi16(a.v, b.v)};
}
ZRT_SIMD Ints shift_left_16(const Ints& a, int bits) {
  return {_mm512_slli_epi16(a.v, static_cast<unsigned>(bits))};
}
ZRT_SIMD Ints shift_right_signed_16(const Ints& a, int bits) {
  return {_mm512_srai_epi16(a.v, static_cast<unsigned>(bits))};
}
// Returns, per lane, a if b < c, else 0.
ZRT_SIMD Ints where_less(const Ints& b, const Ints& c, const Ints& a) {
  return {_mm512_maskz_mov_epi32(_mm512_cmplt_epi32_mask(b.v, c.v), a.v)};
}
// Replaces each byte of `codes` by values[byte]. REQUIRES: the bytes are 0 to 15.
ZRT_SIMD Ints look_up(const Ints& codes, const std::int8_t* values) {
  const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  return {_mm512_shuffle_epi8(table, codes.v)};
}
// Interleaves 16 bytes from each address, so that lane i holds byte i of a, b, c and d.
ZRT_SIMD Ints zip_bytes(const void* a, const void* b, const void* c, const void* d) {
  const auto load_16 = [](const void* p)
                           __attribute__((always_inline)) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
  __m512i all = _mm512_castsi128_si512(load_16(a));
  all = _mm512_inserti32x4(all, load_16(b), 1);
  all = _mm512_inserti32x4(all, load_16(c), 2);
  all = _mm512_inserti32x4(all, load_16(d), 3);
  // After the next two instructions each lane holds one byte of each address. The first instruction sorts words, the
  // second sorts bytes.
  all = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), all);
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return {_mm512_shuffle_epi8(all, _mm512_broadcast_i32x4(order))};
}
// Reads 16 x i16, adds neighbours, and writes the 8 sums.
ZRT_SIMD void add_neighbours(const void* from, void* to) {
  const auto* at = static_cast<const __m128i*>(from);
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm_hadd_epi16(_mm_loadu_si128(at), _mm_loadu_si128(at + 1)));
}
// Multiplies the two signed 16-bit numbers of each lane and adds both products.
ZRT_SIMD Ints dot_pairs(const Ints& a, const Ints& b) {
  return {_mm512_madd_epi16(a.v, b.v)};
}
ZRT_SIMD std::int32_t reduce_max(const Ints& a) {
  return _mm512_reduce_max_epi32(a.v);
}
ZRT_SIMD std::int32_t reduce_add(const Ints& a) {
  return _mm512_reduce_add_epi32(a.v);
}

ZRT_SIMD Floats to_floats(const Ints& a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
ZRT_SIMD Floats as_floats(const Ints& bits) {
  return {_mm512_castsi512_ps(bits.v)};
}
ZRT_SIMD Ints as_ints(const Floats& a) {
  return {_mm512_castps_si512(a.v)};
}

// A Part is one register of floats, for loops that must count registers. It holds all 16 lanes.

using Part = __m512;
constexpr int kParts = 1, kPartLanes = 16;
ZRT_SIMD Part& part(Floats& x, int) {
  return x.v;
}
ZRT_SIMD Part load_part(const float* p) {
  return _mm512_loadu_ps(p);
}
ZRT_SIMD Part load_part_f16(const void* p) {
  return load_f16(p).v;
}
ZRT_SIMD Part load_part_bf16(const void* p) {
  return as_floats(shift_left(load_u16(p), 16)).v;
}
// Keeps a value in a register for several uses. Otherwise GCC would read memory again for each use.
ZRT_SIMD Part hold(Part x) {
  asm("" : "+v"(x));
  return x;
}
ZRT_SIMD void store_part(float* p, Part x) {
  _mm512_storeu_ps(p, x);
}
ZRT_SIMD Part fma_part(Part a, Part b, Part c) {
  return _mm512_fmadd_ps(a, b, c);
}

// An IntPart is one register of integers.

using IntPart = __m512i;
ZRT_SIMD IntPart& part(Ints& x, int) {
  return x.v;
}
ZRT_SIMD IntPart load_int_part(const void* p) {
  return _mm512_loadu_si512(p);
}
ZRT_SIMD IntPart splat_int_part(std::int32_t x) {
  return _mm512_set1_epi32(x);
}
ZRT_SIMD IntPart hold(IntPart x) {
  asm("" : "+v"(x));
  return x;
}
// Returns sum + dot_pairs(a, b).
ZRT_SIMD IntPart add_dot_pairs(IntPart sum, IntPart a, IntPart b) {
#if defined(__AVX512VNNI__)
  return hold(_mm512_dpwssd_epi32(sum, a, b));
#else
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}

// LanePairs holds 32 floats as 16 pairs: the first of each pair, and the second of each pair.

struct LanePairs {
  Floats first, second;
};
ZRT_SIMD LanePairs load_pairs(const float* p) {
  const __m512i even = _mm512_slli_epi32(lane_numbers(), 1), odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
  const __m512 a = _mm512_loadu_ps(p), b = _mm512_loadu_ps(p + 16);
  return {{_mm512_permutex2var_ps(a, even, b)}, {_mm512_permutex2var_ps(a, odd, b)}};
}
ZRT_SIMD void store_pairs(float* p, const LanePairs& x) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_or_si512(low, _mm512_set1_epi32(8));
  _mm512_storeu_ps(p, _mm512_permutex2var_ps(x.first.v, low, x.second.v));
  _mm512_storeu_ps(p + 16, _mm512_permutex2var_ps(x.first.v, high, x.second.v));
}

// The following functions compute fold16 of kernels/common/fold.h for eight sums at once. Each sum has the same tree:
// lanes l and l + 8 are added, then l and l + 4, then l + 2, then l + 1.

// Pair holds two of the eight sums after the first addition of the fold, which leaves eight lanes of each sum. The
// first eight lanes belong to sum j, the last eight to sum j + 4.
struct Pair {
  __m512 lanes;
};
ZRT_SIMD Pair fold_pair(const Floats& a, const Floats& b) {
  return {_mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x44), _mm512_shuffle_f32x4(a.v, b.v, 0xEE))};
}
// Computes y[j] = y[j] + sum j, for j < 8. pairs[j] holds sums j and j + 4.
ZRT_SIMD void add_folds(const Pair* pairs, float* y) {
  // In the results, each quarter of a register (four lanes) belongs to one sum. The quarters belong to the sums j, j +
  // 4, j + 1 and j + 5.
  const auto four = [](__m512 a, __m512 b) __attribute__((always_inline)) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
  };
  const __m512 a = four(pairs[0].lanes, pairs[1].lanes), b = four(pairs[2].lanes, pairs[3].lanes);
  // `two` holds two lanes per sum, in the order 0, 0, 2, 2; 4, 4, 6, 6; 1, 1, 3, 3; 5, 5, 7, 7.
  const __m512 two = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
  const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xB1));
  const __m512i order = _mm512_setr_epi32(0, 8, 2, 10, 4, 12, 6, 14, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m256 sums = _mm512_castps512_ps256(_mm512_permutexvar_ps(order, one));
  _mm256_storeu_ps(y, _mm256_add_ps(_mm256_loadu_ps(y), sums));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
