// Computes dots of codes with activations for AVX2, and for AVX-VNNI if the unit is compiled for it. Each lane
// multiplies 4 codes by 4 activations that all lanes share. dots_avx512.h and dots_neon.h define the same names, and
// linear_body.h uses only these. Everything is static, because the unit that includes this is compiled for its
// instruction set.
#pragma once

#include "kernels/cpu_simd/lanes_avx2.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 4;      // how many rows of x are multiplied by a vector of codes at once
constexpr int kPairTile = 2;  // how many rows of x are multiplied by 16-bit codes at once
// How many rows of x are multiplied by two panels at once. 0: never, because the registers hold the sums of only one
// panel.
constexpr int kWideTile = 0;
constexpr bool kHasWordPairs = false;

// Bytes is a register of 32 bytes, or of sums of their products.
using Bytes = __m256i;
ZRT_SIMD Bytes every_four(const std::int8_t* x) {
  std::int32_t word;
  std::memcpy(&word, x, sizeof(word));
  return _mm256_set1_epi32(word);
}
// Forces GCC to compute the products at this point. Otherwise GCC would compute all products in one expression at the
// end, and spill them.
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
template <bool>
ZRT_SIMD Bytes add_products(Bytes sum, bool is_first, Bytes codes, Bytes x) {
  return _mm256_dpbusd_avx_epi32(is_first ? _mm256_setzero_si256() : sum, codes, x);
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
// Without VNNI, products of 8-bit codes are added in pairs of 16 bits, which can hold the sum of kSteps products. When
// these sums are added to 32 bits, they are multiplied by the scales, so a scale is a pair of 16-bit numbers.
constexpr bool kScalesArePairs = true, kTakesSignedCodes = true, kSumsStartAnywhere = false;
// Returns kSteps: a power of two, at most the number of words that share a scale.
constexpr int steps_of(int largest_code, bool is_signed, int words) {
  int steps = 1;
  while (!is_signed && 2 * steps <= words && 2 * steps * 2 * 127 * largest_code <= 32767) steps *= 2;
  return steps;
}
template <bool kSigned>
ZRT_SIMD Bytes add_products(Bytes sum, bool is_first, Bytes codes, Bytes x) {
  // Signed codes are at least -128 and x at least -127, so no sum of two products overflows 16 bits.
  const Bytes products = kSigned ? _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes))
                                 : _mm256_maddubs_epi16(codes, x);
  return is_first ? products : _mm256_add_epi16(sum, products);
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

template <int kSteps, bool kSigned>
struct Sum {
  Ints sums;
  int n;  // number of products added since `total` was last called; a compile-time constant at each use
  bool is_started = false;
  // Sets the sum to which the first products are added. Used only if kSumsStartAnywhere is true.
  ZRT_MEMBER void start(const Ints& at) {
    sums = at;
    is_started = true;
  }
  // Adds the dot of codes and x[0..4) to the sums. When the 16-bit sums are full, passes them to `total`.
  template <class AddTo>
  ZRT_MEMBER void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    const Bytes four = every_four(x);
    const bool is_first = n == 0 && !is_started;
    sums.lo = add_products<kSigned>(sums.lo, is_first, codes.lo, four);
    sums.hi = add_products<kSigned>(sums.hi, is_first, codes.hi, four);
    compute_now(sums.lo, sums.hi);
    if (++n == kSteps) {
      n = 0;
      is_started = false;
      total(sums);
    }
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
