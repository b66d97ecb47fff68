// Dots of codes for AVX-512 VNNI, with the names of dots_avx2.h. Sums are exact in 32 bits; codes are unsigned.
// Everything is static, because the unit that includes this is compiled for its instruction set.
#pragma once

#include "kernels/cpu_simd/lanes_avx512.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 8;      // rows of x that are multiplied by a vector of codes at once
constexpr int kPairTile = 8;  // rows of x that 16-bit codes are multiplied by at once
// Rows of x that are multiplied by the vectors of two panels: 12 sums, and each load serves two products.
constexpr int kWideTile = 6;
constexpr bool kHasWordPairs = false;

// 64 bytes, or the sums of their products.
using Bytes = __m512i;
ZRT_SIMD Bytes every_four(const std::int8_t* x) {
  std::int32_t word;
  std::memcpy(&word, x, sizeof(word));
  return _mm512_set1_epi32(word);
}

constexpr bool kScalesArePairs = false, kTakesSignedCodes = false, kSumsStartAnywhere = true;
constexpr int steps_of(int, bool, int words) {
  return words;
}
template <bool, bool kIsFirst>
ZRT_SIMD Bytes add_products(Bytes sum, Bytes codes, Bytes x) {
  return _mm512_dpbusd_epi32(kIsFirst ? _mm512_setzero_si512() : sum, codes, x);
}
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}
ZRT_SIMD Ints add_dot_pairs(const Ints& sum, const Ints& a, const Ints& b) {
  return {_mm512_dpwssd_epi32(sum.v, a.v, b.v)};
}

ZRT_SIMD void add_to(Ints& sum, const Ints& x) {
  sum = sum + x;
}

// kSteps products are added to a sum before it is used. kStarted: the first ones are added to what start() was given.
template <int kSteps, bool kSigned, bool kStarted>
struct Sum {
  Ints sums;
  ZRT_MEMBER void start(const Ints& at) { sums = at; }
  // Adds codes . x[0..4), as the kNth products since the beginning of the sub-block. When kSteps products were added,
  // the sum is passed to `total`.
  template <int kNth, class AddTo>
  ZRT_MEMBER void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    constexpr bool kIsFirst = kNth % kSteps == 0 && !(kStarted && kNth == 0);
    sums.v = add_products<kSigned, kIsFirst>(sums.v, codes.v, every_four(x));
    if constexpr ((kNth + 1) % kSteps == 0) total(sums);
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
