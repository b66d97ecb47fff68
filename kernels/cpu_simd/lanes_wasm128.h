// Defines 16 lanes of floats or integers for WebAssembly's vectors of 128 bits, with the names of lanes_avx2.h. 16 lanes
// are four vectors. WebAssembly has no fused multiply-add with the same result everywhere, so fma() here computes it from
// doubles. Everything is static and always inlined, as in the other lanes headers.
#pragma once

#include <wasm_simd128.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

// A loop may sum into this many Floats at once, besides its operands, without running out of registers.
constexpr int kSums = 2;

using F32x4 = float __attribute__((vector_size(16)));
using F64x2 = double __attribute__((vector_size(16)));
using I32x4 = v128_t;

struct Floats {  // q[i] holds lanes 4 i to 4 i + 3
  F32x4 q[4];
};
struct Ints {  // holds 16 x i32, or 64 bytes
  I32x4 q[4];
};

// Calls fn(0) to fn(3), once per vector.
template <class Fn>
ZRT_SIMD Floats four_floats(Fn&& fn) {
  return {fn(0), fn(1), fn(2), fn(3)};
}
template <class Fn>
ZRT_SIMD Ints four_ints(Fn&& fn) {
  return {fn(0), fn(1), fn(2), fn(3)};
}
#define ZRT_EACH [&](int i) __attribute__((always_inline))

// Reinterpret the bits of a vector as lanes of another type.
ZRT_SIMD v128_t bits_of(F32x4 a) {
  return reinterpret_cast<v128_t>(a);
}
ZRT_SIMD F32x4 as_f32(v128_t a) {
  return reinterpret_cast<F32x4>(a);
}
ZRT_SIMD F64x2 as_f64(v128_t a) {
  return reinterpret_cast<F64x2>(a);
}
ZRT_SIMD v128_t bits_of(F64x2 a) {
  return reinterpret_cast<v128_t>(a);
}

// a * b + c, rounded once to float. The product of two floats is exact in a double. Their sum with c is rounded to a
// double and then to a float, which gives another result than one rounding only if the double lies just in the middle
// between two floats, or if the float is subnormal. Such lanes are computed again, with the sum rounded to odd.

ZRT_SIMD F64x2 low_doubles(F32x4 a) {
  return as_f64(wasm_f64x2_promote_low_f32x4(bits_of(a)));
}
ZRT_SIMD F64x2 high_doubles(F32x4 a) {
  return low_doubles(__builtin_shufflevector(a, a, 2, 3, 2, 3));
}
// Returns p + c rounded to odd: if the sum is not exact, the neighbour whose last bit is 1.
ZRT_SIMD F64x2 add_to_odd(F64x2 p, F64x2 c) {
  const F64x2 sum = p + c, added = sum - p;
  const F64x2 error = (p - (sum - added)) + (c - added);  // exact (Knuth); NaN if the sum is infinite
  const v128_t s = bits_of(sum), e = bits_of(error);
  // 1 if the exact sum is farther from 0 than `sum`, else -1.
  const v128_t step = wasm_v128_or(wasm_i64x2_shr(wasm_v128_xor(s, e), 63), wasm_i64x2_splat(1));
  const v128_t is_even = wasm_i64x2_sub(wasm_v128_and(s, wasm_i64x2_splat(1)), wasm_i64x2_splat(1));
  const v128_t is_inexact = wasm_f64x2_gt(wasm_f64x2_abs(e), wasm_f64x2_splat(0));
  return as_f64(wasm_i64x2_add(s, wasm_v128_and(step, wasm_v128_and(is_even, is_inexact))));
}
// Returns bits that are not all 0 if a second rounding of `sum` may change a float.
ZRT_SIMD v128_t is_unsure(F64x2 sum) {
  const v128_t s = bits_of(sum), magnitude = wasm_f64x2_abs(s);
  const v128_t is_middle = wasm_i64x2_eq(wasm_v128_and(s, wasm_i64x2_splat(0x1FFFFFFF)), wasm_i64x2_splat(0x10000000));
  const v128_t is_small = wasm_v128_and(wasm_f64x2_lt(magnitude, wasm_f64x2_splat(0x1p-125)),
                                        wasm_f64x2_gt(magnitude, wasm_f64x2_splat(0)));
  return wasm_v128_or(is_middle, is_small);
}
ZRT_SIMD F32x4 to_f32(F64x2 low, F64x2 high) {
  const v128_t l = wasm_f32x4_demote_f64x2_zero(bits_of(low)), h = wasm_f32x4_demote_f64x2_zero(bits_of(high));
  return as_f32(wasm_i32x4_shuffle(l, h, 0, 1, 4, 5));
}
// Not inlined, because it is rarely needed and would be a third of the module.
[[gnu::noinline, gnu::cold]] static F32x4 fma_to_odd(F32x4 a, F32x4 b, F32x4 c) {
  return to_f32(add_to_odd(low_doubles(a) * low_doubles(b), low_doubles(c)),
                add_to_odd(high_doubles(a) * high_doubles(b), high_doubles(c)));
}
ZRT_SIMD F32x4 fma_part(F32x4 a, F32x4 b, F32x4 c) {
  const F64x2 low = low_doubles(a) * low_doubles(b) + low_doubles(c);
  const F64x2 high = high_doubles(a) * high_doubles(b) + high_doubles(c);
  if (__builtin_expect(wasm_v128_any_true(wasm_v128_or(is_unsure(low), is_unsure(high))), 0))
    return fma_to_odd(a, b, c);
  return to_f32(low, high);
}

// The following functions operate on floats. Memory of narrow numbers is read by bytes, because it is aligned only to
// bytes.

ZRT_SIMD Floats splat(float x) {
  const F32x4 all = as_f32(wasm_f32x4_splat(x));
  return {all, all, all, all};
}
ZRT_SIMD Floats load(const float* p) {
  return four_floats(ZRT_EACH { return as_f32(wasm_v128_load(p + 4 * i)); });
}
ZRT_SIMD void store(float* p, const Floats& a) {
  for (int i = 0; i < 4; ++i) wasm_v128_store(p + 4 * i, bits_of(a.q[i]));
}
ZRT_SIMD v128_t load_halves(const void* p, int i) {  // loads four numbers, beginning with number 4 i, and widens them
  return wasm_u32x4_load16x4(static_cast<const std::uint8_t*>(p) + 8 * i);
}
// halves: four f16, each in the low bits of a lane.
ZRT_SIMD F32x4 widen_f16(v128_t halves) {
  const v128_t magnitude = wasm_v128_and(halves, wasm_i32x4_splat(0x7FFF));
  const v128_t sign = wasm_i32x4_shl(wasm_v128_xor(halves, magnitude), 16);
  // The bits of the f16 in the place of a float's have an exponent that is smaller by 112, also where it is subnormal.
  const F32x4 scaled = as_f32(wasm_i32x4_shl(magnitude, 13)) * as_f32(wasm_f32x4_splat(0x1p112f));
  const v128_t is_special = wasm_i32x4_gt(magnitude, wasm_i32x4_splat(0x7BFF));  // infinite or NaN
  const v128_t exponent = wasm_v128_and(is_special, wasm_i32x4_splat(0x7F800000));
  return as_f32(wasm_v128_or(wasm_v128_or(bits_of(scaled), exponent), sign));
}
ZRT_SIMD Floats load_f16(const void* p) {
  return four_floats(ZRT_EACH { return widen_f16(load_halves(p, i)); });
}
ZRT_SIMD float f16_to_float(std::uint16_t h) {
  return widen_f16(wasm_i32x4_splat(h))[0];
}
ZRT_SIMD Floats load_i8(const void* p) {
  const v128_t all = wasm_v128_load(p);
  const v128_t low = wasm_i16x8_extend_low_i8x16(all), high = wasm_i16x8_extend_high_i8x16(all);
  const auto to_float = [](v128_t x) __attribute__((always_inline)) { return as_f32(wasm_f32x4_convert_i32x4(x)); };
  return {to_float(wasm_i32x4_extend_low_i16x8(low)), to_float(wasm_i32x4_extend_high_i16x8(low)),
          to_float(wasm_i32x4_extend_low_i16x8(high)), to_float(wasm_i32x4_extend_high_i16x8(high))};
}
// Returns p[0], p[stride], ... p[15 * stride].
ZRT_SIMD Floats gather(const float* p, std::int32_t stride) {
  const std::int64_t step = stride;
  return four_floats(ZRT_EACH {
    const float* at = p + 4 * i * step;
    return F32x4{at[0], at[step], at[2 * step], at[3 * step]};
  });
}
// Returns the lane numbers 0, 1, ... 15.
ZRT_SIMD Floats lane_index() {
  return {F32x4{0, 1, 2, 3}, F32x4{4, 5, 6, 7}, F32x4{8, 9, 10, 11}, F32x4{12, 13, 14, 15}};
}

ZRT_SIMD Floats operator+(const Floats& a, const Floats& b) {
  return four_floats(ZRT_EACH { return a.q[i] + b.q[i]; });
}
ZRT_SIMD Floats operator-(const Floats& a, const Floats& b) {
  return four_floats(ZRT_EACH { return a.q[i] - b.q[i]; });
}
ZRT_SIMD Floats operator*(const Floats& a, const Floats& b) {
  return four_floats(ZRT_EACH { return a.q[i] * b.q[i]; });
}
ZRT_SIMD Floats fma(const Floats& a, const Floats& b, const Floats& c) {
  return four_floats(ZRT_EACH { return fma_part(a.q[i], b.q[i], c.q[i]); });
}
ZRT_SIMD Floats negate(const Floats& a) {
  return four_floats(ZRT_EACH { return as_f32(wasm_f32x4_neg(bits_of(a.q[i]))); });
}
// Returns a > b ? x : y.
ZRT_SIMD Floats select_gt(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return four_floats(ZRT_EACH {
    return as_f32(
        wasm_v128_bitselect(bits_of(x.q[i]), bits_of(y.q[i]), wasm_f32x4_gt(bits_of(a.q[i]), bits_of(b.q[i]))));
  });
}
// Returns a >= b ? x : y.
ZRT_SIMD Floats select_ge(const Floats& a, const Floats& b, const Floats& x, const Floats& y) {
  return four_floats(ZRT_EACH {
    return as_f32(
        wasm_v128_bitselect(bits_of(x.q[i]), bits_of(y.q[i]), wasm_f32x4_ge(bits_of(a.q[i]), bits_of(b.q[i]))));
  });
}
// Returns a > b ? a : b, even if one is NaN.
ZRT_SIMD Floats max(const Floats& a, const Floats& b) {
  return select_gt(a, b, a, b);
}
// Returns the largest lane. REQUIRES: none is NaN.
ZRT_SIMD float reduce_max(const Floats& a) {
  const auto larger = [](F32x4 x, F32x4 y)
                          __attribute__((always_inline)) { return as_f32(wasm_f32x4_pmax(bits_of(x), bits_of(y))); };
  F32x4 most = larger(larger(a.q[0], a.q[1]), larger(a.q[2], a.q[3]));
  most = larger(most, __builtin_shufflevector(most, most, 2, 3, 0, 1));
  return most[0] > most[1] ? most[0] : most[1];
}
// Returns the sum of the lanes, in the order of fold16 in kernels/common/fold.h.
ZRT_SIMD float reduce_add(const Floats& a) {
  const F32x4 four = (a.q[0] + a.q[2]) + (a.q[1] + a.q[3]);
  const F32x4 two = four + __builtin_shufflevector(four, four, 2, 3, 2, 3);
  return two[0] + two[1];
}

// The following functions operate on integers.

ZRT_SIMD Ints splat(std::int32_t x) {
  const v128_t all = wasm_i32x4_splat(x);
  return {all, all, all, all};
}
ZRT_SIMD Ints load_ints(const void* p) {
  const auto* at = static_cast<const std::uint8_t*>(p);
  return four_ints(ZRT_EACH { return wasm_v128_load(at + 16 * i); });
}
ZRT_SIMD void store(void* p, const Ints& a) {
  auto* at = static_cast<std::uint8_t*>(p);
  for (int i = 0; i < 4; ++i) wasm_v128_store(at + 16 * i, a.q[i]);
}
ZRT_SIMD Ints load_u16(const void* p) {  // reads 16 x u16 and widens them
  return four_ints(ZRT_EACH { return load_halves(p, i); });
}
ZRT_SIMD Ints load_u8(const void* p) {  // reads 16 x u8 and widens them
  const v128_t all = wasm_v128_load(p);
  const v128_t low = wasm_u16x8_extend_low_u8x16(all), high = wasm_u16x8_extend_high_u8x16(all);
  return {wasm_u32x4_extend_low_u16x8(low), wasm_u32x4_extend_high_u16x8(low), wasm_u32x4_extend_low_u16x8(high),
          wasm_u32x4_extend_high_u16x8(high)};
}
// Stores each lane as one byte, 16 bytes in all. REQUIRES: each lane fits a signed byte.
ZRT_SIMD void store_i8(void* p, const Ints& a) {
  wasm_v128_store(
      p, wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(a.q[0], a.q[1]), wasm_i16x8_narrow_i32x4(a.q[2], a.q[3])));
}

// Returns the lanes of a and then those of b as 16 bits each. REQUIRES: each lane fits.
ZRT_SIMD Ints narrow_i16(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH {
    const Ints& from = i < 2 ? a : b;
    return wasm_i16x8_narrow_i32x4(from.q[i % 2 * 2], from.q[i % 2 * 2 + 1]);
  });
}

ZRT_SIMD Ints operator&(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_v128_and(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator|(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_v128_or(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator^(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_v128_xor(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator+(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_i32x4_add(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator-(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_i32x4_sub(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints operator*(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_i32x4_mul(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints max(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_i32x4_max(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints add_bytes(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_i8x16_add(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints shift_right(const Ints& a, int bits) {  // fills with zeros
  return four_ints(ZRT_EACH { return wasm_u32x4_shr(a.q[i], static_cast<std::uint32_t>(bits)); });
}
ZRT_SIMD Ints shift_right_signed(const Ints& a, int bits) {
  return four_ints(ZRT_EACH { return wasm_i32x4_shr(a.q[i], static_cast<std::uint32_t>(bits)); });
}
ZRT_SIMD Ints shift_left(const Ints& a, int bits) {
  return four_ints(ZRT_EACH { return wasm_i32x4_shl(a.q[i], static_cast<std::uint32_t>(bits)); });
}
// Shifts each lane of a left by the number of bits in b's lane, which is 0 to 31.
ZRT_SIMD Ints shift_left(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH {
    // A float with exponent b is 2^b.
    const v128_t power = wasm_i32x4_shl(wasm_i32x4_add(b.q[i], wasm_i32x4_splat(127)), 23);
    return wasm_i32x4_mul(a.q[i], wasm_u32x4_trunc_sat_f32x4(power));
  });
}
// Adds the two 16-bit halves of each lane separately.
ZRT_SIMD Ints add_16(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_i16x8_add(a.q[i], b.q[i]); });
}
ZRT_SIMD Ints shift_left_16(const Ints& a, int bits) {
  return four_ints(ZRT_EACH { return wasm_i16x8_shl(a.q[i], static_cast<std::uint32_t>(bits)); });
}
ZRT_SIMD Ints shift_right_signed_16(const Ints& a, int bits) {
  return four_ints(ZRT_EACH { return wasm_i16x8_shr(a.q[i], static_cast<std::uint32_t>(bits)); });
}
// Returns, per lane, a if b < c, else 0.
ZRT_SIMD Ints where_less(const Ints& b, const Ints& c, const Ints& a) {
  return four_ints(ZRT_EACH { return wasm_v128_and(wasm_i32x4_lt(b.q[i], c.q[i]), a.q[i]); });
}
// Replaces each byte of `codes` by values[byte]. REQUIRES: the bytes are 0 to 15.
ZRT_SIMD Ints look_up(const Ints& codes, const std::int8_t* values) {
  const v128_t table = wasm_v128_load(values);
  return four_ints(ZRT_EACH { return wasm_i8x16_swizzle(table, codes.q[i]); });
}
ZRT_SIMD v128_t zip_low_bytes(v128_t a, v128_t b) {
  return wasm_i8x16_shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
ZRT_SIMD v128_t zip_high_bytes(v128_t a, v128_t b) {
  return wasm_i8x16_shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
ZRT_SIMD v128_t zip_low_words(v128_t a, v128_t b) {
  return wasm_i16x8_shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
ZRT_SIMD v128_t zip_high_words(v128_t a, v128_t b) {
  return wasm_i16x8_shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
// Interleaves 16 bytes from each address, so that lane i holds byte i of a, b, c and d.
ZRT_SIMD Ints zip_bytes(const void* a, const void* b, const void* c, const void* d) {
  const v128_t x = wasm_v128_load(a), y = wasm_v128_load(b), z = wasm_v128_load(c), w = wasm_v128_load(d);
  const v128_t low = zip_low_bytes(x, y), high = zip_high_bytes(x, y);
  const v128_t low_2 = zip_low_bytes(z, w), high_2 = zip_high_bytes(z, w);
  return {zip_low_words(low, low_2), zip_high_words(low, low_2), zip_low_words(high, high_2),
          zip_high_words(high, high_2)};
}
// Reads 16 x i16, adds neighbours, and writes the 8 sums.
ZRT_SIMD void add_neighbours(const void* from, void* to) {
  const auto* at = static_cast<const std::uint8_t*>(from);
  const v128_t x = wasm_v128_load(at), y = wasm_v128_load(at + 16);
  const v128_t even = wasm_i16x8_shuffle(x, y, 0, 2, 4, 6, 8, 10, 12, 14);
  const v128_t odd = wasm_i16x8_shuffle(x, y, 1, 3, 5, 7, 9, 11, 13, 15);
  wasm_v128_store(to, wasm_i16x8_add(even, odd));
}
// Multiplies the two signed 16-bit numbers of each lane and adds both products.
ZRT_SIMD Ints dot_pairs(const Ints& a, const Ints& b) {
  return four_ints(ZRT_EACH { return wasm_i32x4_dot_i16x8(a.q[i], b.q[i]); });
}
ZRT_SIMD std::int32_t reduce_max(const Ints& a) {
  v128_t most = wasm_i32x4_max(wasm_i32x4_max(a.q[0], a.q[1]), wasm_i32x4_max(a.q[2], a.q[3]));
  most = wasm_i32x4_max(most, wasm_i32x4_shuffle(most, most, 2, 3, 0, 1));
  most = wasm_i32x4_max(most, wasm_i32x4_shuffle(most, most, 1, 0, 3, 2));
  return wasm_i32x4_extract_lane(most, 0);
}
ZRT_SIMD std::int32_t reduce_add(const Ints& a) {
  v128_t sum = wasm_i32x4_add(wasm_i32x4_add(a.q[0], a.q[1]), wasm_i32x4_add(a.q[2], a.q[3]));
  sum = wasm_i32x4_add(sum, wasm_i32x4_shuffle(sum, sum, 2, 3, 0, 1));
  sum = wasm_i32x4_add(sum, wasm_i32x4_shuffle(sum, sum, 1, 0, 3, 2));
  return wasm_i32x4_extract_lane(sum, 0);
}

ZRT_SIMD Floats to_floats(const Ints& a) {
  return four_floats(ZRT_EACH { return as_f32(wasm_f32x4_convert_i32x4(a.q[i])); });
}
ZRT_SIMD Floats as_floats(const Ints& bits) {
  return four_floats(ZRT_EACH { return as_f32(bits.q[i]); });
}
ZRT_SIMD Ints as_ints(const Floats& a) {
  return four_ints(ZRT_EACH { return bits_of(a.q[i]); });
}

// A Part is one vector of floats, for loops that must count registers. Part p holds lanes 4 p to 4 p + 3.

using Part = F32x4;
constexpr int kParts = 4, kPartLanes = 4;
ZRT_SIMD Part& part(Floats& x, int p) {
  return x.q[p];
}
ZRT_SIMD Part load_part(const float* p) {
  return as_f32(wasm_v128_load(p));
}
ZRT_SIMD Part load_part_f16(const void* p) {
  return widen_f16(load_halves(p, 0));
}
ZRT_SIMD Part load_part_bf16(const void* p) {
  return as_f32(wasm_i32x4_shl(load_halves(p, 0), 16));
}
// Where other sets keep a value in a register for several uses, the compiler of the machine that runs this decides.
ZRT_SIMD Part hold(Part x) {
  return x;
}
ZRT_SIMD void store_part(float* p, Part x) {
  wasm_v128_store(p, bits_of(x));
}

// An IntPart is one vector of integers.

using IntPart = I32x4;
ZRT_SIMD IntPart& part(Ints& x, int p) {
  return x.q[p];
}
ZRT_SIMD IntPart load_int_part(const void* p) {
  return wasm_v128_load(p);
}
ZRT_SIMD IntPart splat_int_part(std::int32_t x) {
  return wasm_i32x4_splat(x);
}
ZRT_SIMD IntPart hold(IntPart x) {
  return x;
}
// Returns sum + dot_pairs(a, b).
ZRT_SIMD IntPart add_dot_pairs(IntPart sum, IntPart a, IntPart b) {
  return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(a, b));
}

// LanePairs holds 32 floats as 16 pairs: the first of each pair, and the second of each pair.

struct LanePairs {
  Floats first, second;
};
ZRT_SIMD LanePairs load_pairs(const float* p) {
  LanePairs x;
  for (int i = 0; i < 4; ++i) {
    const F32x4 a = load_part(p + 8 * i), b = load_part(p + 8 * i + 4);
    x.first.q[i] = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    x.second.q[i] = __builtin_shufflevector(a, b, 1, 3, 5, 7);
  }
  return x;
}
ZRT_SIMD void store_pairs(float* p, const LanePairs& x) {
  for (int i = 0; i < 4; ++i) {
    store_part(p + 8 * i, __builtin_shufflevector(x.first.q[i], x.second.q[i], 0, 4, 1, 5));
    store_part(p + 8 * i + 4, __builtin_shufflevector(x.first.q[i], x.second.q[i], 2, 6, 3, 7));
  }
}

// The following functions compute fold16 of kernels/common/fold.h for eight sums at once. Each sum has the same tree:
// lanes l and l + 8 are added, then l and l + 4, then l + 2, then l + 1.

// Holds two of the eight sums, j and j + 4, after the first two steps of the fold, after which each sum is spread over
// four lanes.
struct Pair {
  F32x4 j, j4;
};
ZRT_SIMD Pair fold_pair(const Floats& a, const Floats& b) {
  return {(a.q[0] + a.q[2]) + (a.q[1] + a.q[3]), (b.q[0] + b.q[2]) + (b.q[1] + b.q[3])};
}
// Computes y[j] = y[j] + sum j, for j < 8. pairs[j] holds sums j and j + 4.
ZRT_SIMD void add_folds(const Pair* pairs, float* y) {
  // Adds lanes l and l + 2 of a and of b. Returns two lanes of a and two of b.
  const auto two = [](F32x4 a, F32x4 b) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  };
  const auto four = [&](F32x4 a, F32x4 b, F32x4 c, F32x4 d) __attribute__((always_inline)) {
    const F32x4 ab = two(a, b), cd = two(c, d);
    return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
  };
  store_part(y, load_part(y) + four(pairs[0].j, pairs[1].j, pairs[2].j, pairs[3].j));
  store_part(y + 4, load_part(y + 4) + four(pairs[0].j4, pairs[1].j4, pairs[2].j4, pairs[3].j4));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
