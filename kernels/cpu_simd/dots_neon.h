// Dots of codes for NEON, and for the dot product of bytes if the unit is compiled for it, with the names of
// dots_avx2.h. Codes and activations are signed bytes. Everything is static, because the unit that includes this is
// compiled for its instruction set.
#pragma once

#include "kernels/cpu_simd/lanes_neon.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 4;      // rows of x that are multiplied by a vector of codes at once
constexpr int kPairTile = 2;  // rows of x that 16-bit codes are multiplied by at once
constexpr int kWideTile = 0;  // none: the registers hold the sums of only one panel
#if defined(__ARM_FEATURE_MATMUL_INT8)
constexpr bool kHasWordPairs = true;
#else
constexpr bool kHasWordPairs = false;
#endif

constexpr bool kTakesSignedCodes = true, kSumsStartAnywhere = false;
#if defined(__ARM_FEATURE_DOTPROD)
// With the dot product, sums are exact in 32 bits.
constexpr bool kScalesArePairs = false;
constexpr int steps_of(int, bool, int words) {
  return words;
}
template <bool kIsFirst>
ZRT_SIMD int32x4_t add_products(int32x4_t sum, int8x16_t codes, int8x16_t x) {
  return vdotq_s32(kIsFirst ? vdupq_n_s32(0) : sum, codes, x);
}
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}
#else
// Without the dot product, products of 8-bit codes are added in pairs of 16 bits, which can hold kSteps of them. When
// the sums are added to 32 bits, they are multiplied by the scales, so a scale is a pair of 16-bit numbers.
constexpr bool kScalesArePairs = true;
// Returns kSteps: a power of two, at most the `words` that share a scale. Signed codes are at least -128 and x at least
// -127, so no sum of two products overflows 16 bits.
constexpr int steps_of(int largest_code, bool is_signed, int words) {
  int steps = 1;
  while (!is_signed && 2 * steps <= words && 2 * steps * 2 * 127 * largest_code <= 32767) steps *= 2;
  return steps;
}
template <bool kIsFirst>
ZRT_SIMD int32x4_t add_products(int32x4_t sum, int8x16_t codes, int8x16_t x) {
  const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(codes), vget_low_s8(x)), vmull_high_s8(codes, x));
  return vreinterpretq_s32_s16(kIsFirst ? pairs : vaddq_s16(as_s16(sum), pairs));
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

// kSteps products are added to a sum before it is used.
template <int kSteps, bool, bool kStarted>
struct Sum {
  static_assert(!kStarted);
  Ints sums;
  // Adds codes . x[0..4), as the kNth products since the beginning of the sub-block. When the sums are full, they are
  // passed to `total`.
  template <int kNth, class AddTo>
  __attribute__((always_inline)) void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    std::int32_t word;
    std::memcpy(&word, x, sizeof(word));
    const int8x16_t four = as_s8(vdupq_n_s32(word));
    sums = four_ints(ZRT_EACH { return add_products < kNth % kSteps == 0 > (sums.q[i], as_s8(codes.q[i]), four); });
    if constexpr ((kNth + 1) % kSteps == 0) total(sums);
  }
};

#if defined(__ARM_FEATURE_MATMUL_INT8)
// The same for two words of each row side by side, and one or two rows of x, with the matrix product of bytes: it takes
// 8 values of two rows of W and of two rows of x. The words are added in order, interleaved.
template <int kSteps, int kRows>
struct PairSum {
  Ints sums[2];  // sums of rows 4 i and 4 i + 1 of W; and of rows 4 i + 2 and 4 i + 3
  // Interleaves two words into a register of rows 4 i and 4 i + 1 and one of rows 4 i + 2 and 4 i + 3, for each i.
  ZRT_SIMD void interleave(std::int32_t* even, std::int32_t* odd) {
    const Ints a = load_ints(even), b = load_ints(odd);
    store(even, four_ints(ZRT_EACH { return vzip1q_s32(a.q[i], b.q[i]); }));
    store(odd, four_ints(ZRT_EACH { return vzip2q_s32(a.q[i], b.q[i]); }));
  }
  // Adds register w of the 8 registers of codes of a block. For even w, the registers w and w + 1 hold two words of
  // each row of W, as interleave() stores them. x(r) returns the address of the block's values in row r of x. The 8
  // values that belong to the two words begin at x(r) + 4 * (w - w % 2). After each kSteps registers the sums are full.
  // Then total(r, sum) is called for each row r of x.
  template <class W, class X, class AddTo>
  __attribute__((always_inline)) void add(W, const Ints& codes, X&& x, AddTo&& total) {
    constexpr int w = W();
    constexpr int at = 4 * (w - w % 2);
    const int8x16_t values = vcombine_s8(vld1_s8(x(0) + at), vld1_s8(x(kRows - 1) + at));
    const Ints before = w % kSteps < 2 ? splat(0) : sums[w % 2];
    sums[w % 2] = four_ints(ZRT_EACH {
      const int8x16_t two = as_s8(codes.q[i]);
      return kRows == 1 ? vdotq_s32(before.q[i], two, values) : vmmlaq_s32(before.q[i], two, values);
    });
    if constexpr ((w + 1) % kSteps != 0) return;
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
