// 16 lanes of integers or floats, and dots of codes, for AVX2 (with F16C and FMA), and with AVX-VNNI where the unit is
// compiled for it. linear_body.h is written in these
// names; ints_avx512.h has the same. Included by one unit that is compiled for the instruction set: all is static.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 4;  // rows of x that meet a vector of codes
struct Ints {             // 16 x i32, or 64 bytes; lane = row
  __m256i lo, hi;
};
struct Floats {
  __m256 lo, hi;
};

ZRT_SIMD Ints zero_ints() {
  return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
ZRT_SIMD Ints splat(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
ZRT_SIMD Ints load(const void* p) {
  const auto* at = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
ZRT_SIMD void store(void* p, const Ints& a) {
  auto* at = static_cast<__m256i*>(p);
  _mm256_storeu_si256(at, a.lo);
  _mm256_storeu_si256(at + 1, a.hi);
}
ZRT_SIMD Ints load_u16(const void* p) {  // 16 x u16, widened
  const auto* at = static_cast<const __m128i*>(p);
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(at)), _mm256_cvtepu16_epi32(_mm_loadu_si128(at + 1))};
}
ZRT_SIMD Ints load_u8(const void* p) {  // 16 x u8, widened
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
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
ZRT_SIMD Ints add_bytes(const Ints& a, const Ints& b) {
  return {_mm256_add_epi8(a.lo, b.lo), _mm256_add_epi8(a.hi, b.hi)};
}
ZRT_SIMD Ints shift_right(const Ints& a, int bits) {  // of 32-bit lanes, zeros in
  return {_mm256_srli_epi32(a.lo, bits), _mm256_srli_epi32(a.hi, bits)};
}
ZRT_SIMD Ints shift_left(const Ints& a, int bits) {
  return {_mm256_slli_epi32(a.lo, bits), _mm256_slli_epi32(a.hi, bits)};
}
ZRT_SIMD Ints shift_right_signed(const Ints& a, int bits) {
  return {_mm256_srai_epi32(a.lo, bits), _mm256_srai_epi32(a.hi, bits)};
}
// Of 32-bit lanes by as many bits as b's lane says, 0 to 31.
ZRT_SIMD Ints shift_left(const Ints& a, const Ints& b) {
  return {_mm256_sllv_epi32(a.lo, b.lo), _mm256_sllv_epi32(a.hi, b.hi)};
}
// a where b < c, else 0; signed lanes.
ZRT_SIMD Ints where_less(const Ints& b, const Ints& c, const Ints& a) {
  return {_mm256_and_si256(_mm256_cmpgt_epi32(c.lo, b.lo), a.lo),
          _mm256_and_si256(_mm256_cmpgt_epi32(c.hi, b.hi), a.hi)};
}
// Byte i becomes values[code], codes from 0 to 15.
ZRT_SIMD Ints look_up(const Ints& codes, const std::int8_t* values) {
  const __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  return {_mm256_shuffle_epi8(table, codes.lo), _mm256_shuffle_epi8(table, codes.hi)};
}
// Two signed 16-bit products a lane, added.
ZRT_SIMD Ints dot_pairs(const Ints& a, const Ints& b) {
  return {_mm256_madd_epi16(a.lo, b.lo), _mm256_madd_epi16(a.hi, b.hi)};
}

ZRT_SIMD Floats zero_floats() {
  return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}
ZRT_SIMD Floats splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
ZRT_SIMD Floats load_floats(const float* p) {
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
ZRT_SIMD Floats to_floats(const Ints& a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
ZRT_SIMD Floats as_floats(const Ints& bits) {
  return {_mm256_castsi256_ps(bits.lo), _mm256_castsi256_ps(bits.hi)};
}
ZRT_SIMD Floats negative(const Floats& a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
ZRT_SIMD Floats operator+(const Floats& a, const Floats& b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
ZRT_SIMD Floats operator*(const Floats& a, const Floats& b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
ZRT_SIMD Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

// ---- dots of 4 codes a lane with 4 activations that all lanes share ----

#if defined(__AVXVNNI__)
// Exact in 32 bits; codes are unsigned.
constexpr bool kScalesArePairs = false, kTakesSignedCodes = false;
constexpr int steps_of(int, bool, int words) {
  return words;
}
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}
#else
// Products of 8-bit codes are added in pairs of 16 bits, which hold kSteps of them; scales multiply the pairs when they
// are added to 32 bits, so a scale is a pair of 16-bit numbers.
constexpr bool kScalesArePairs = true, kTakesSignedCodes = true;
// A power of two, at most the `words` that share a scale.
constexpr int steps_of(int largest_code, bool is_signed, int words) {
  int steps = 1;
  while (!is_signed && 2 * steps <= words && 2 * steps * 2 * 127 * largest_code <= 32767) steps *= 2;
  return steps;
}
ZRT_SIMD Ints plain_sum(const Ints& pairs) {
  return dot_pairs(pairs, {_mm256_set1_epi16(1), _mm256_set1_epi16(1)});
}
ZRT_SIMD Ints scaled_sum(const Ints& pairs, const Ints& scale) {
  return dot_pairs(pairs, scale);
}
#endif

template <int kSteps, bool kSigned>
struct Sum {
  Ints sums;
  int n;  // products since the sum was last passed on; known to the compiler at each use
  ZRT_SIMD __m256i added(__m256i sum, bool is_first, __m256i codes, __m256i x) {
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(is_first ? _mm256_setzero_si256() : sum, codes, x);
#else
    // Signed: codes from -128, x from -127, so that no sum of two products leaves 16 bits.
    const __m256i products = kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes))
                                     : _mm256_maddubs_epi16(codes, x);
    return is_first ? products : _mm256_add_epi16(sum, products);
#endif
  }
  // Adds codes . x[0..4); what is full is passed on to `total`.
  template <class AddTo>
  __attribute__((always_inline)) void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    std::int32_t word;
    std::memcpy(&word, x, sizeof(word));
    const __m256i four = _mm256_set1_epi32(word);
    sums.lo = added(sums.lo, n == 0, codes.lo, four);
    sums.hi = added(sums.hi, n == 0, codes.hi, four);
    // Added here and now: GCC would keep all products for one expression at the end, and spill them.
    asm("" : "+x"(sums.lo), "+x"(sums.hi));
    if (++n == kSteps) {
      n = 0;
      total(sums);
    }
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
