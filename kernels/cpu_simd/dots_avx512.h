// Dots of codes for AVX-512 VNNI: the names of dots_avx2.h. Exact in 32 bits; codes are unsigned. Included by one unit
// that is compiled for the instruction set: all is static.
#pragma once

#include "kernels/cpu_simd/lanes_avx512.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 8;  // rows of x that meet a vector of codes
constexpr bool kHasWordPairs = false;

// 64 bytes, or sums of their products.
using Bytes = __m512i;
ZRT_SIMD Bytes every_four(const std::int8_t* x) {
  std::int32_t word;
  std::memcpy(&word, x, sizeof(word));
  return _mm512_set1_epi32(word);
}

constexpr bool kScalesArePairs = false, kTakesSignedCodes = false;
constexpr int steps_of(int, bool, int words) {
  return words;
}
template <bool>
ZRT_SIMD Bytes add_products(Bytes sum, bool is_first, Bytes codes, Bytes x) {
  return _mm512_dpbusd_epi32(is_first ? _mm512_setzero_si512() : sum, codes, x);
}
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}

template <int kSteps, bool kSigned>
struct Sum {
  Ints sums;
  int n;  // products since the sum was last passed on; known to the compiler at each use
  // Adds codes . x[0..4); what is full is passed on to `total`.
  template <class AddTo>
  __attribute__((always_inline)) void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    sums.v = add_products<kSigned>(sums.v, n == 0, codes.v, every_four(x));
    if (++n == kSteps) {
      n = 0;
      total(sums);
    }
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
