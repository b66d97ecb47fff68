// Dots of codes for AVX2, and for AVX-VNNI if the unit is compiled for it: each lane multiplies 4 codes by 4
// activations that all lanes share. dots_avx512.h, dots_neon.h and dots_wasm128.h define the same names, and linear_body.h uses only
// these. Everything is static, because the unit that includes this is compiled for its instruction set.
#pragma once

#include "kernels/cpu_simd/lanes_avx2.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 4;      // rows of x that are multiplied by a vector of codes at once
constexpr int kPairTile = 2;  // rows of x that 16-bit codes are multiplied by at once
constexpr int kWideTile = 0;  // none: the registers hold the sums of only one panel
constexpr bool kHasWordPairs = false;

// 32 bytes, or the sums of their products.
using Bytes = __m256i;
ZRT_SIMD Bytes every_four(const std::int8_t* x) {
  std::int32_t word;
  std::memcpy(&word, x, sizeof(word));
  return _mm256_set1_epi32(word);
}
// Forces GCC to compute the products here. Otherwise it would keep them all for one expression at the end and spill
// them.
ZRT_SIMD void compute_now(Bytes& a, Bytes& b) {
  asm("" : "+x"(a), "+x"(b));
}
ZRT_SIMD void add_to(Ints& sum, const Ints& x) {
  sum = sum + x;
  compute_now(sum.lo, sum.hi);
}

#if defined(__AVXVNNI__)
// With VNNI, sums are exact in 32 bits, and codes are unsigned.
constexpr bool kScalesArePairs = false, kTakesSignedCodes = false, kSumsStartAnywhere = true;
constexpr int steps_of(int, bool, int words) {
  return words;
}
template <bool, bool kIsFirst>
ZRT_SIMD Bytes add_products(Bytes sum, Bytes codes, Bytes x) {
  return _mm256_dpbusd_avx_epi32(kIsFirst ? _mm256_setzero_si256() : sum, codes, x);
}
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}
ZRT_SIMD Ints add_dot_pairs(const Ints& sum, const Ints& a, const Ints& b) {
  return {_mm256_dpwssd_avx_epi32(sum.lo, a.lo, b.lo), _mm256_dpwssd_avx_epi32(sum.hi, a.hi, b.hi)};
}
#else
// Without VNNI, products of 8-bit codes and activations are added in 16 bits. Each 32-bit lane holds a pair of such
// sums. A word has 4 codes, and each sum of the pair gets the products of two of them. A sum can hold the products of
// kSteps words. Then both sums of a pair are multiplied by the scale, and the two results are added in 32 bits. So a
// scale is a pair of equal 16-bit numbers.
constexpr bool kScalesArePairs = true, kTakesSignedCodes = true, kSumsStartAnywhere = false;
// Returns kSteps: a power of two, at most the number of `words` that share a scale.
constexpr int steps_of(int largest_code, bool is_signed, int words) {
  int steps = 1;
  while (!is_signed && 2 * steps <= words && 2 * steps * 2 * 127 * largest_code <= 32767) steps *= 2;
  return steps;
}
template <bool kSigned, bool kIsFirst>
ZRT_SIMD Bytes add_products(Bytes sum, Bytes codes, Bytes x) {
  // Signed codes are at least -128 and x at least -127, so no sum of two products overflows 16 bits.
  const Bytes products = kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes))
                                 : _mm256_maddubs_epi16(codes, x);
  return kIsFirst ? products : _mm256_add_epi16(sum, products);
}
ZRT_SIMD Ints plain_sum(const Ints& pairs) {
  return dot_pairs(pairs, {_mm256_set1_epi16(1), _mm256_set1_epi16(1)});
}
ZRT_SIMD Ints scaled_sum(const Ints& pairs, const Ints& scale) {
  return dot_pairs(pairs, scale);
}
ZRT_SIMD Ints add_dot_pairs(const Ints& sum, const Ints& a, const Ints& b) {
  return sum + dot_pairs(a, b);
}
#endif

// kSteps products are added to a sum before it is used. kStarted: the first ones are added to what start() was given
// (only if kSumsStartAnywhere).
template <int kSteps, bool kSigned, bool kStarted>
struct Sum {
  Ints sums;
  ZRT_MEMBER void start(const Ints& at) { sums = at; }
  // Adds codes . x[0..4), as the kNth products since the beginning of the sub-block. When the 16-bit sums are full, they
  // are passed to `total`.
  template <int kNth, class AddTo>
  ZRT_MEMBER void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    constexpr bool kIsFirst = kNth % kSteps == 0 && !(kStarted && kNth == 0);
    const Bytes four = every_four(x);
    sums.lo = add_products<kSigned, kIsFirst>(sums.lo, codes.lo, four);
    sums.hi = add_products<kSigned, kIsFirst>(sums.hi, codes.hi, four);
    compute_now(sums.lo, sums.hi);
    if constexpr ((kNth + 1) % kSteps == 0) total(sums);
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
