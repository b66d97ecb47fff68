// 16 lanes of integers or floats, and dots of codes, for AVX-512 (F, BW, VL, VNNI): the names of ints_avx2.h. Included
// by one unit that is compiled for the instruction set: all is static.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 8;  // rows of x that meet a vector of codes

struct Ints {  // 16 x i32, or 64 bytes; lane = row
  __m512i v;
};
struct Floats {
  __m512 v;
};

ZRT_SIMD Ints zero_ints() {
  return {_mm512_setzero_si512()};
}
ZRT_SIMD Ints splat(std::int32_t x) {
  return {_mm512_set1_epi32(x)};
}
ZRT_SIMD Ints load(const void* p) {
  return {_mm512_loadu_si512(p)};
}
ZRT_SIMD void store(void* p, const Ints& a) {
  _mm512_storeu_si512(p, a.v);
}
ZRT_SIMD Ints load_u16(const void* p) {  // 16 x u16, widened
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
ZRT_SIMD Ints load_u8(const void* p) {  // 16 x u8, widened
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))};
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
ZRT_SIMD Ints add_bytes(const Ints& a, const Ints& b) {
  return {_mm512_add_epi8(a.v, b.v)};
}
ZRT_SIMD Ints shift_right(const Ints& a, int bits) {  // of 32-bit lanes, zeros in
  return {_mm512_srli_epi32(a.v, static_cast<unsigned>(bits))};
}
ZRT_SIMD Ints shift_left(const Ints& a, int bits) {
  return {_mm512_slli_epi32(a.v, static_cast<unsigned>(bits))};
}
ZRT_SIMD Ints shift_right_signed(const Ints& a, int bits) {
  return {_mm512_srai_epi32(a.v, static_cast<unsigned>(bits))};
}
// Of 32-bit lanes by as many bits as b's lane says, 0 to 31.
ZRT_SIMD Ints shift_left(const Ints& a, const Ints& b) {
  return {_mm512_sllv_epi32(a.v, b.v)};
}
// a where b < c, else 0; signed lanes.
ZRT_SIMD Ints where_less(const Ints& b, const Ints& c, const Ints& a) {
  return {_mm512_maskz_mov_epi32(_mm512_cmplt_epi32_mask(b.v, c.v), a.v)};
}
// Byte i becomes values[code], codes from 0 to 15.
ZRT_SIMD Ints look_up(const Ints& codes, const std::int8_t* values) {
  const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  return {_mm512_shuffle_epi8(table, codes.v)};
}
// Two signed 16-bit products a lane, added.
ZRT_SIMD Ints dot_pairs(const Ints& a, const Ints& b) {
  return {_mm512_madd_epi16(a.v, b.v)};
}

ZRT_SIMD Floats zero_floats() {
  return {_mm512_setzero_ps()};
}
ZRT_SIMD Floats splat(float x) {
  return {_mm512_set1_ps(x)};
}
ZRT_SIMD Floats load_floats(const float* p) {
  return {_mm512_loadu_ps(p)};
}
ZRT_SIMD void store(float* p, const Floats& a) {
  _mm512_storeu_ps(p, a.v);
}
ZRT_SIMD Floats load_f16(const void* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
ZRT_SIMD Floats to_floats(const Ints& a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
ZRT_SIMD Floats as_floats(const Ints& bits) {
  return {_mm512_castsi512_ps(bits.v)};
}
ZRT_SIMD Floats negative(const Floats& a) {
  return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(INT32_MIN)))};
}
ZRT_SIMD Floats operator+(const Floats& a, const Floats& b) {
  return {_mm512_add_ps(a.v, b.v)};
}
ZRT_SIMD Floats operator*(const Floats& a, const Floats& b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
ZRT_SIMD Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}

// ---- dots of 4 codes a lane with 4 activations that all lanes share: exact in 32 bits, codes unsigned ----

constexpr bool kScalesArePairs = false, kTakesSignedCodes = false;
constexpr int steps_of(int, bool, int words) {
  return words;
}
template <int kSteps, bool>
struct Sum {
  Ints dots;
  int n;  // products since the sum was last passed on; known to the compiler at each use
  // Adds codes . x[0..4); what is full is passed on to `total`.
  template <class AddTo>
  __attribute__((always_inline)) void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    std::int32_t word;
    std::memcpy(&word, x, sizeof(word));
    dots.v = _mm512_dpbusd_epi32(n == 0 ? _mm512_setzero_si512() : dots.v, codes.v, _mm512_set1_epi32(word));
    if (++n == kSteps) {
      n = 0;
      total(dots);
    }
  }
};
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
