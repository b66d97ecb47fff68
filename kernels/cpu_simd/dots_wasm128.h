// Dots of codes for WebAssembly's vectors of 128 bits, with the names of dots_avx2.h. Codes and activations are signed
// bytes. Everything is static, as in the other dots headers.
#pragma once

#include "kernels/cpu_simd/lanes_wasm128.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr int kTile = 2;      // rows of x that are multiplied by a vector of codes at once
constexpr int kPairTile = 2;  // rows of x that 16-bit codes are multiplied by at once
constexpr int kWideTile = 0;  // none: the registers hold the sums of only one panel
constexpr bool kHasWordPairs = false;
constexpr bool kTakesSignedCodes = true, kSumsStartAnywhere = false;

// Sums are exact in 32 bits.
constexpr bool kScalesArePairs = false;
constexpr int steps_of(int, bool, int words) {
  return words;
}
ZRT_SIMD Ints plain_sum(const Ints& dots) {
  return dots;
}
ZRT_SIMD Ints scaled_sum(const Ints& dots, const Ints& scale) {
  return dots * scale;
}
ZRT_SIMD Ints add_dot_pairs(const Ints& sum, const Ints& a, const Ints& b) {
  return sum + dot_pairs(a, b);
}
ZRT_SIMD void add_to(Ints& sum, const Ints& x) {
  sum = sum + x;
}

// kSteps products are added to a sum before it is used. The four products of a lane are added in two halves, which are
// added to each other once at the end.
template <int kSteps, bool, bool kStarted>
struct Sum {
  static_assert(!kStarted);
  Ints low, high;  // of lanes 4 i and 4 i + 1, and of lanes 4 i + 2 and 4 i + 3; two neighbours belong to a lane
  // Adds codes . x[0..4), as the kNth products since the beginning of the sub-block. When the sums are full, they are
  // passed to `total`.
  template <int kNth, class AddTo>
  __attribute__((always_inline)) void add(const Ints& codes, const std::int8_t* x, AddTo&& total) {
    const v128_t four = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_splat(x));
    constexpr bool kIsFirst = kNth % kSteps == 0;
    const auto plus = [](v128_t sum, v128_t more)
                          __attribute__((always_inline)) { return kIsFirst ? more : wasm_i32x4_add(sum, more); };
    low = four_ints(
        ZRT_EACH { return plus(low.q[i], wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(codes.q[i]), four)); });
    high = four_ints(
        ZRT_EACH { return plus(high.q[i], wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(codes.q[i]), four)); });
    if constexpr ((kNth + 1) % kSteps == 0)
      total(four_ints(ZRT_EACH {
        return wasm_i32x4_add(wasm_i32x4_shuffle(low.q[i], high.q[i], 0, 2, 4, 6),
                              wasm_i32x4_shuffle(low.q[i], high.q[i], 1, 3, 5, 7));
      }));
  }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
