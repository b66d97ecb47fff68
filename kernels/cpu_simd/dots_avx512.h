// Computes dots of codes with activations for AVX-512 VNNI, with the names of dots_avx2.h. Sums are exact in 32 bits,
// and codes are unsigned. Everything is static, because the unit that includes this is compiled for its instruction
// set.
#pragma once

#include "kernels/cpu_simd/lanes_avx512.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 8;      // how many rows of x are multiplied by a vector of codes at once
constexpr int kPairTile = 8;  // how many rows of x are multiplied by 16-bit codes at once
// How many rows of x are multiplied by the vectors of two panels at once. With 6 rows there are 12 sums, and each load
// of x serves two products.
constexpr int kWideTile = 6;
constexpr bool kHasWordPairs = false;

// Bytes is a register of 64 bytes, or of sums of their products.
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
ZRT_SIMD Ints add_dot_pairs(const Ints& sum, const Ints& a, const Ints& b) {
  return {_mm512_dpwssd_epi32(sum.v, a.v, b.v)};
}

ZRT_SIMD void add_to(Ints& sum, const Ints& x) {
  sum = sum + x;
}

template <int kSteps, bool kSigned>
struct Sum {
  Ints sums;
  int n;  // number of products added since `total` was last called; a compile-time constant at each use
  bool is_started = false;
  // Sets the sum to which the first products are added.
  ZRT_MEMBER void start(const Ints& at) {
    sums = at;
    is_started = true;
  }
  // Adds the dot of codes and x[0..4) to the sum. When kSteps products were added, passes the sum to `total`.
  template <class AddTo>
  ZRT_MEMBER void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    sums.v = add_products<kSigned>(sums.v, n == 0 && !is_started, codes.v, every_four(x));
    if (++n == kSteps) {
      n = 0;
      is_started = false;
      total(sums);
    }
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
