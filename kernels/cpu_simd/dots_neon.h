// Computes dots of codes with activations for NEON, and for the dot product of bytes if the unit is compiled for it,
// with the names of dots_avx2.h. Codes and activations are signed bytes. Everything is static, because the unit that
// includes this is compiled for its instruction set.
#pragma once

#include "kernels/cpu_simd/lanes_neon.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 4;      // how many rows of x are multiplied by a vector of codes at once
constexpr int kPairTile = 2;  // how many rows of x are multiplied by 16-bit codes at once
// 0: two panels are never multiplied at once, because the registers hold the sums of only one.
constexpr int kWideTile = 0;
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kHasWordPairs = true;
#else
constexpr bool kHasWordPairs = false;
#endif

constexpr bool kTakesSignedCodes = true, kSumsStartAnywhere = false;
#if defined(__ARM_FEATURE_DOTPROD)
// With the instruction for dot products of bytes, sums are exact in 32 bits.
constexpr bool kScalesArePairs = false;
constexpr int steps_of(int, bool, int words) {
  return words;
}
ZRT_SIMD int32x4_t add_products(int32x4_t sum, bool is_first, int8x16_t codes, int8x16_t x) {
  return vdotq_s32(is_first ? vdupq_n_s32(0) : sum, codes, x);
}
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}
#else
// Without the dot product of bytes, products of 8-bit codes are added in pairs of 16 bits, which can hold the sum of
// kSteps products. When these sums are added to 32 bits, they are multiplied by the scales, so a scale is a pair of
// 16-bit numbers.
constexpr bool kScalesArePairs = true;
// Returns kSteps: a power of two, at most the number of words that share a scale. Signed codes are at least -128 and x
// at least -127, so no sum of two products overflows 16 bits.
constexpr int steps_of(int largest_code, bool is_signed, int words) {
  int steps = 1;
  while (!is_signed && 2 * steps <= words && 2 * steps * 2 * 127 * largest_code <= 32767) steps *= 2;
  return steps;
}
ZRT_SIMD int32x4_t add_products(int32x4_t sum, bool is_first, int8x16_t codes, int8x16_t x) {
  const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(codes), vget_low_s8(x)), vmull_high_s8(codes, x));
  return vreinterpretq_s32_s16(is_first ? pairs : vaddq_s16(as_s16(sum), pairs));
}
ZRT_SIMD Ints plain_sum(const Ints& pairs) {
  return four_ints(ZRT_EACH { return vpaddlq_s16(as_s16(pairs.q[i])); });
}
ZRT_SIMD Ints scaled_sum(const Ints& pairs, const Ints& scale) {
  return dot_pairs(pairs, scale);
}
#endif
ZRT_SIMD Ints add_dot_pairs(const Ints& sum, const Ints& a, const Ints& b) {
  return sum + dot_pairs(a, b);
}

ZRT_SIMD void add_to(Ints& sum, const Ints& x) {
  sum = sum + x;
}

template <int kSteps, bool>
struct Sum {
  Ints sums;
  int n;  // number of products added since `total` was last called; a compile-time constant at each use
  // Adds the dot of codes and x[0..4) to the sums. When the sums are full, passes them to `total`.
  template <class AddTo>
  __attribute__((always_inline)) void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    std::int32_t word;
    std::memcpy(&word, x, sizeof(word));
    const int8x16_t four = as_s8(vdupq_n_s32(word));
    sums = four_ints(ZRT_EACH { return add_products(sums.q[i], n == 0, as_s8(codes.q[i]), four); });
    if (++n == kSteps) {
      n = 0;
      total(sums);
    }
  }
};

#if defined(__ARM_FEATURE_MATMUL_INT8)
// Sums the products for two words of each row side by side, for one or two rows of x. It uses the instruction for the
// matrix product of bytes, which multiplies 8 values of each of two rows of W and two rows of x. The words are added in
// order, interleaved.
template <int kSteps, int kRows>
struct PairSum {
  Ints sums[2];  // [0]: sums of rows 4 i and 4 i + 1 of W; [1]: of rows 4 i + 2 and 4 i + 3
  // Interleaves two words of 16 rows: for each i, `even` gets rows 4 i and 4 i + 1, and `odd` gets rows 4 i + 2 and 4 i
  // + 3.
  ZRT_SIMD void interleave(std::int32_t* even, std::int32_t* odd) {
    const Ints a = load_ints(even), b = load_ints(odd);
    store(even, four_ints(ZRT_EACH { return vzip1q_s32(a.q[i], b.q[i]); }));
    store(odd, four_ints(ZRT_EACH { return vzip2q_s32(a.q[i], b.q[i]); }));
  }
  // Adds word w of 8. The values of row r of x begin at x(r) + 4 w. When the sums are full, calls total(r, sum).
  template <class X, class AddTo>
  __attribute__((always_inline)) void add(int w, const Ints& codes, X&& x, AddTo&& total) {
    const int at = 4 * (w - w % 2);
    const int8x16_t values = vcombine_s8(vld1_s8(x(0) + at), vld1_s8(x(kRows - 1) + at));
    const Ints before = w % kSteps < 2 ? splat(0) : sums[w % 2];
    sums[w % 2] = four_ints(ZRT_EACH {
      const int8x16_t two = as_s8(codes.q[i]);
      return kRows == 1 ? vdotq_s32(before.q[i], two, values) : vmmlaq_s32(before.q[i], two, values);
    });
    if ((w + 1) % kSteps != 0) return;
    const Ints &a = sums[0], &b = sums[1];
    if constexpr (kRows == 1) {
      total(0, four_ints(ZRT_EACH { return vpaddq_s32(a.q[i], b.q[i]); }));
    } else {
      total(0, four_ints(ZRT_EACH { return vuzp1q_s32(a.q[i], b.q[i]); }));
      total(1, four_ints(ZRT_EACH { return vuzp2q_s32(a.q[i], b.q[i]); }));
    }
  }
};
#endif

}  // namespace
}  // namespace zinc_rt::cpu_simd
