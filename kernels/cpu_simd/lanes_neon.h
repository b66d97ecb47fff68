// Defines 16 lanes of floats or integers for NEON on 64-bit ARM, with the names of lanes_avx2.h. 16 lanes are four
// registers. Everything is static and always inlined, because units with other compiler flags need their own copies.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

// A loop may sum into this many Floats at once, besides its operands, without running out of registers.
constexpr int kSums = 4;

struct Floats {  // q[i] holds lanes 4 i to 4 i + 3
  float32x4_t q[4];
};
struct Ints {  // holds 16 x i32, or 64 bytes
  int32x4_t q[4];
};

// Calls fn(0) to fn(3), once per register.
template <class Fn>
ZRT_SIMD Floats four_floats(Fn&& fn) {
  return {fn(0), fn(1), fn(2), fn(3)};
}
template <class Fn>
ZRT_SIMD Ints four_ints(Fn&& fn) {
  return {fn(0), fn(1), fn(2), fn(3)};
}
#define ZRT_EACH [&](int i) __attribute__((always_inline))

// Reinterpret the bits of a register as lanes of another type.
ZRT_SIMD uint32x4_t as_u32(int32x4_t a) {
  return vreinterpretq_u32_s32(a);
}
ZRT_SIMD int32x4_t as_s32(uint32x4_t a) {
  return vreinterpretq_s32_u32(a);
}
ZRT_SIMD int8x16_t as_s8(int32x4_t a) {
  return vreinterpretq_s8_s32(a);
}
ZRT_SIMD int16x8_t as_s16(int32x4_t a) {
  return vreinterpretq_s16_s32(a);
}

// The following functions operate on floats. Memory of narrow numbers is read by bytes, because it is aligned only to
// bytes.

ZRT_SIMD Floats splat(float x) {
  const float32x4_t all = vdupq_n_f32(x);
  return {all, all, all, all};
}
ZRT_SIMD Floats load(const float* p) {
  return four_floats(ZRT_EACH { return vld1q_f32(p + 4 * i); });
}
ZRT_SIMD void store(float* p, const Floats& a) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.q[i]);
}
ZRT_SIMD uint16x4_t load_halves(const void* p, int i) {  // loads four numbers, beginning with number 4 i
  return vreinterpret_u16_u8(vld1_u8(static_cast<const std::uint8_t*>(p) + 8 * i));
}
ZRT_SIMD float32x4_t widen_f16(uint16x4_t halves) {
  return vcvt_f32_f16(vreinterpret_f16_u16(halves));
}
ZRT_SIMD Floats load_f16(const void* p) {
  return four_floats(ZRT_EACH { return widen_f16(load_halves(p, i)); });
}
ZRT_SIMD float f16_to_float(std::uint16_t h) {
  return vgetq_lane_f32(widen_f16(vdup_n_u16(h)), 0);
}
ZRT_SIMD Floats load_i8(const void* p) {
  const int8x16_t all = vld1q_s8(static_cast<const std::int8_t*>(p));
  const int16x8_t low = vmovl_s8(vget_low_s8(all)), high = vmovl_high_s8(all);
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
          vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
}
// Returns p[0], p[stride], ... p[15 * stride].
ZRT_SIMD Floats gather(const float* p, std::int32_t stride) {
  const std::int64_t step = stride;
  return four_floats(ZRT_EACH {
    const float* at = p + 4 * i * step;
    return float32x4_t{at[0], at[step], at[2 * step], at[3 * step]};
  });
}
// Returns the lane numbers 0, 1, ... 15.
ZRT_SIMD Floats lane_index() {
  return {float32x4_t{0, 1, 2, 3}, float32x4_t{4, 5, 6, 7}, float32x4_t{8, 9, 10, 11}, float32x4_t{12, 13, 14, 15}};
}

ZRT_SIMD Floats operator+(const Floats& a, const Floats& b) {
  return four_floats(ZRT_EACH { return vaddq_f32(a.q[i], b.q[i]); });
}
ZRT_SIMD Floats operator-(const Floats& a, const Floats& b) {
  return four_floats(ZRT_EACH { return vsubq_f32(a.q[i], b.q[i]); });
}
ZRT_SIMD Floats operator*(const Floats& a, const Floats& b) {
  return four_floats(ZRT_EACH { return vmulq_f32(a.q[i], b.q[i]); });
}
ZRT_SIMD Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  return four_floats(ZRT_EACH { return vfmaq_f32(c.q[i], a.q[i], b.q[i]); });
}
ZRT_SIMD Floats negate(const Floats& a) {
  return four_floats(ZRT_EACH { return vnegq_f32(a.q[i]); });
}
// Returns a > b ? x : y.
ZRT_SIMD Floats select_gt(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return four_floats(ZRT_EACH { return vbslq_f32(vcgtq_f32(a.q[i], b.q[i]), x.q[i], y.q[i]); });
}
// Returns a >= b ? x : y.
ZRT_SIMD Floats select_ge(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return four_floats(ZRT_EACH { return vbslq_f32(vcgeq_f32(a.q[i], b.q[i]), x.q[i], y.q[i]); });
}
// Returns a > b ? a : b, even if one is NaN. The processor's maximum instruction would return NaN.
ZRT_SIMD Floats max(const Floats& a, const Floats& b) {
  return select_gt(a, b, a, b);
}
// Returns the largest lane. REQUIRES: none is NaN.
ZRT_SIMD float reduce_max(const Floats& a) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(a.q[0], a.q[1]), vmaxq_f32(a.q[2], a.q[3])));
}
// Returns the sum of the lanes, in the order of fold16 in kernels/common/fold.h.
ZRT_SIMD float reduce_add(const Floats& a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// The following functions operate on integers.

ZRT_SIMD Ints splat(std::int32_t x) {
  const int32x4_t all = vdupq_n_s32(x);
  return {all, all, all, all};
}
ZRT_SIMD Ints load_ints(const void* p) {
  const auto* at = static_cast<const std::uint8_t*>(p);
  return four_ints(ZRT_EACH { return vreinterpretq_s32_u8(vld1q_u8(at + 16 * i)); });
}
ZRT_SIMD void store(void* p, const Ints& a) {
  auto* at = static_cast<std::uint8_t*>(p);
  for (int i = 0; i < 4; ++i) vst1q_u8(at + 16 * i, vreinterpretq_u8_s32(a.q[i]));
}
ZRT_SIMD Ints load_u16(const void* p) {  // reads 16 x u16 and widens them
  return four_ints(ZRT_EACH { return as_s32(vmovl_u16(load_halves(p, i))); });
}
ZRT_SIMD Ints load_u8(const void* p) {  // reads 16 x u8 and widens them
  const uint8x16_t all = vld1q_u8(static_cast<const std::uint8_t*>(p));
  const uint16x8_t low = vmovl_u8(vget_low_u8(all)), high = vmovl_high_u8(all);
  return {as_s32(vmovl_u16(vget_low_u16(low))), as_s32(vmovl_high_u16(low)), as_s32(vmovl_u16(vget_low_u16(high))),
          as_s32(vmovl_high_u16(high))};
}
// Stores each lane as one byte, 16 bytes in all. REQUIRES: each lane fits a signed byte.
ZRT_SIMD void store_i8(void* p, const Ints& a) {
  const auto two = [](int32x4_t low, int32x4_t high)
                       __attribute__((always_inline)) { return vmovn_high_s32(vmovn_s32(low), high); };
  vst1q_s8(static_cast<std::int8_t*>(p), vmovn_high_s16(vmovn_s16(two(a.q[0], a.q[1])), two(a.q[2], a.q[3])));
}

// Returns the lanes of a and then those of b as 16 bits each. REQUIRES: each lane fits.
ZRT_SIMD Ints narrow_i16(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH {
    const Ints& from = i < 2 ? a : b;
    return vreinterpretq_s32_s16(vmovn_high_s32(vmovn_s32(from.q[i % 2 * 2]), from.q[i % 2 * 2 + 1]));
  });
}

ZRT_SIMD Ints operator&(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vandq_s32(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator|(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vorrq_s32(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator^(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return veorq_s32(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator+(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vaddq_s32(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator-(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vsubq_s32(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator*(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vmulq_s32(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints max(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vmaxq_s32(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints add_bytes(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vreinterpretq_s32_s8(vaddq_s8(as_s8(a.q[i]), as_s8(b.q[i]))); });
}
ZRT_SIMD Ints shift_right(const Ints& a, int bits) {  // fills with zeros
  return four_ints(ZRT_EACH { return as_s32(vshlq_u32(as_u32(a.q[i]), vdupq_n_s32(-bits))); });
}
ZRT_SIMD Ints shift_right_signed(const Ints& a, int bits) {
  return four_ints(ZRT_EACH { return vshlq_s32(a.q[i], vdupq_n_s32(-bits)); });
}
ZRT_SIMD Ints shift_left(const Ints& a, int bits) {
  return four_ints(ZRT_EACH { return vshlq_s32(a.q[i], vdupq_n_s32(bits)); });
}
// Shifts each lane of a left by the number of bits in b's lane, which is 0 to 31.
ZRT_SIMD Ints shift_left(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vshlq_s32(a.q[i], b.q[i]); });
}
// Adds the two 16-bit halves of each lane separately.
ZRT_SIMD Ints add_16(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return vreinterpretq_s32_s16(vaddq_s16(as_s16(a.q[i]), as_s16(b.q[i]))); });
}
ZRT_SIMD Ints shift_left_16(const Ints& a, int bits) {
  const int16x8_t by = vdupq_n_s16(static_cast<std::int16_t>(bits));
  return four_ints(ZRT_EACH { return vreinterpretq_s32_s16(vshlq_s16(as_s16(a.q[i]), by)); });
}
ZRT_SIMD Ints shift_right_signed_16(const Ints& a, int bits) {
  return shift_left_16(a, -bits);
}
// Returns, per lane, a if b < c, else 0.
ZRT_SIMD Ints where_less(const Ints& b, const Ints& c, const Ints& a) {
  return four_ints(ZRT_EACH { return vandq_s32(as_s32(vcltq_s32(b.q[i], c.q[i])), a.q[i]); });
}
// Replaces each byte of `codes` by values[byte]. REQUIRES: the bytes are 0 to 15.
ZRT_SIMD Ints look_up(const Ints& codes, const std::int8_t* values) {
  const int8x16_t table = vld1q_s8(values);
  return four_ints(ZRT_EACH { return vreinterpretq_s32_s8(vqtbl1q_s8(table, vreinterpretq_u8_s32(codes.q[i]))); });
}
// Interleaves 16 bytes from each address, so that lane i holds byte i of a, b, c and d.
ZRT_SIMD Ints zip_bytes(const void* a, const void* b, const void* c, const void* d) {
  const auto load_16 = [](const void* p)
                           __attribute__((always_inline)) { return vld1q_u8(static_cast<const std::uint8_t*>(p)); };
  const uint8x16_t x = load_16(a), y = load_16(b), z = load_16(c), w = load_16(d);
  const auto words = [](uint8x16_t ab, uint8x16_t cd, bool is_high) __attribute__((always_inline)) {
    const uint16x8_t first = vreinterpretq_u16_u8(ab), second = vreinterpretq_u16_u8(cd);
    return vreinterpretq_s32_u16(is_high ? vzip2q_u16(first, second) : vzip1q_u16(first, second));
  };
  const uint8x16_t low = vzip1q_u8(x, y), high = vzip2q_u8(x, y), low_2 = vzip1q_u8(z, w), high_2 = vzip2q_u8(z, w);
  return {words(low, low_2, false), words(low, low_2, true), words(high, high_2, false), words(high, high_2, true)};
}
// Reads 16 x i16, adds neighbours, and writes the 8 sums.
ZRT_SIMD void add_neighbours(const void* from, void* to) {
  const auto* at = static_cast<const std::int16_t*>(from);
  vst1q_s16(static_cast<std::int16_t*>(to), vpaddq_s16(vld1q_s16(at), vld1q_s16(at + 8)));
}
// Multiplies the two signed 16-bit numbers of each lane and adds both products.
ZRT_SIMD Ints dot_pairs(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH {
    const int16x8_t x = as_s16(a.q[i]), y = as_s16(b.q[i]);
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
  });
}
ZRT_SIMD std::int32_t reduce_max(const Ints& a) {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.q[0], a.q[1]), vmaxq_s32(a.q[2], a.q[3])));
}
ZRT_SIMD std::int32_t reduce_add(const Ints& a) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(a.q[0], a.q[1]), vaddq_s32(a.q[2], a.q[3])));
}

ZRT_SIMD Floats to_floats(const Ints& a) {
  return four_floats(ZRT_EACH { return vcvtq_f32_s32(a.q[i]); });
}
ZRT_SIMD Floats as_floats(const Ints& bits) {
  return four_floats(ZRT_EACH { return vreinterpretq_f32_s32(bits.q[i]); });
}
ZRT_SIMD Ints as_ints(const Floats& a) {
  return four_ints(ZRT_EACH { return vreinterpretq_s32_f32(a.q[i]); });
}

// A Part is one register of floats, for loops that must count registers. Part p holds lanes 4 p to 4 p + 3.

using Part = float32x4_t;
constexpr int kParts = 4, kPartLanes = 4;
ZRT_SIMD Part& part(Floats& x, int p) {
  return x.q[p];
}
ZRT_SIMD Part load_part(const float* p) {
  return vld1q_f32(p);
}
ZRT_SIMD Part load_part_f16(const void* p) {
  return widen_f16(load_halves(p, 0));
}
ZRT_SIMD Part load_part_bf16(const void* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(load_halves(p, 0), 16));
}
// Keeps a value in a register for several uses. Otherwise a compiler may read memory again for each use.
ZRT_SIMD Part hold(Part x) {
  asm("" : "+w"(x));
  return x;
}
ZRT_SIMD void store_part(float* p, Part x) {
  vst1q_f32(p, x);
}
ZRT_SIMD Part fma_part(Part a, Part b, Part c) {
  return vfmaq_f32(c, a, b);
}

// An IntPart is one register of integers.

using IntPart = int32x4_t;
ZRT_SIMD IntPart& part(Ints& x, int p) {
  return x.q[p];
}
ZRT_SIMD IntPart load_int_part(const void* p) {
  return vreinterpretq_s32_u8(vld1q_u8(static_cast<const std::uint8_t*>(p)));
}
ZRT_SIMD IntPart splat_int_part(std::int32_t x) {
  return vdupq_n_s32(x);
}
ZRT_SIMD IntPart hold(IntPart x) {
  asm("" : "+w"(x));
  return x;
}
// Returns sum + dot_pairs(a, b).
ZRT_SIMD IntPart add_dot_pairs(IntPart sum, IntPart a, IntPart b) {
  const int16x8_t x = as_s16(a), y = as_s16(b);
  return vaddq_s32(sum, vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y)));
}

// LanePairs holds 32 floats as 16 pairs: the first of each pair, and the second of each pair.

struct LanePairs {
  Floats first, second;
};
ZRT_SIMD LanePairs load_pairs(const float* p) {
  LanePairs x;
  for (int i = 0; i < 4; ++i) {
    const float32x4x2_t two = vld2q_f32(p + 8 * i);
    x.first.q[i] = two.val[0];
    x.second.q[i] = two.val[1];
  }
  return x;
}
ZRT_SIMD void store_pairs(float* p, const LanePairs& x) {
  for (int i = 0; i < 4; ++i) {
    const float32x4x2_t two{{x.first.q[i], x.second.q[i]}};  // named, because clang's vst2q_f32 is a macro
    vst2q_f32(p + 8 * i, two);
  }
}

// The following functions compute fold16 of kernels/common/fold.h for eight sums at once. Each sum has the same tree:
// lanes l and l + 8 are added, then l and l + 4, then l + 2, then l + 1.

// Holds two of the eight sums, j and j + 4, after the first two steps of the fold, after which each sum is spread over
// four lanes.
struct Pair {
  float32x4_t j, j4;
};
ZRT_SIMD Pair fold_pair(const Floats& a, const Floats& b) {
  return {vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3])),
          vaddq_f32(vaddq_f32(b.q[0], b.q[2]), vaddq_f32(b.q[1], b.q[3]))};
}
// Computes y[j] = y[j] + sum j, for j < 8. pairs[j] holds sums j and j + 4.
ZRT_SIMD void add_folds(const Pair* pairs, float* y) {
  // Adds neighbouring lanes of a and b. Returns two lanes of a and two of b.
  const auto two = [](float32x4_t a, float32x4_t b) __attribute__((always_inline)) {
    const float64x2_t x = vreinterpretq_f64_f32(a), z = vreinterpretq_f64_f32(b);
    return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(x, z)), vreinterpretq_f32_f64(vzip2q_f64(x, z)));
  };
  const auto four = [&](float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t d)
                        __attribute__((always_inline)) { return vpaddq_f32(two(a, b), two(c, d)); };
  vst1q_f32(y, vaddq_f32(vld1q_f32(y), four(pairs[0].j, pairs[1].j, pairs[2].j, pairs[3].j)));
  vst1q_f32(y + 4, vaddq_f32(vld1q_f32(y + 4), four(pairs[0].j4, pairs[1].j4, pairs[2].j4, pairs[3].j4)));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
