// Several is a group of vectors that is used like one vector: each operation is done on all vectors before the next
// operation. The operations of a function on one vector depend on each other, so a processor cannot overlap them. With
// several vectors it can overlap the operations on different vectors. The functions of lanes_math.h accept a Several in
// place of Floats. Included after a lanes header.
#pragma once

namespace zinc_rt::cpu_simd {
namespace {

template <class V, int kN>
struct Several {
  V of[kN];

  ZRT_MEMBER Several() {}
  ZRT_MEMBER Several(const V& all) {  // sets all vectors to the same constant
    for (V& v : of) v = all;
  }
  template <class Fn>
  ZRT_MEMBER static Several each(Fn&& fn) {
    Several r;
#pragma GCC unroll 8
    for (int i = 0; i < kN; ++i) r.of[i] = fn(i);
    return r;
  }
#define ZRT_SEVERAL(expression) return each([&](int i) __attribute__((always_inline)) { return expression; })
  ZRT_MEMBER friend Several operator+(const Several& a, const Several& b) { ZRT_SEVERAL(a.of[i] + b.of[i]); }
  ZRT_MEMBER friend Several operator-(const Several& a, const Several& b) { ZRT_SEVERAL(a.of[i] - b.of[i]); }
  ZRT_MEMBER friend Several operator*(const Several& a, const Several& b) { ZRT_SEVERAL(a.of[i] * b.of[i]); }
  ZRT_MEMBER friend Several fma(const Several& a, const Several& b, const Several& c) {
    ZRT_SEVERAL(fma(a.of[i], b.of[i], c.of[i]));
  }
  ZRT_MEMBER friend Several negate(const Several& a) { ZRT_SEVERAL(negate(a.of[i])); }
  ZRT_MEMBER friend Several select_gt(const Several& a, const Several& b, const Several& x, const Several& y) {
    ZRT_SEVERAL(select_gt(a.of[i], b.of[i], x.of[i], y.of[i]));
  }
  ZRT_MEMBER friend Several select_ge(const Several& a, const Several& b, const Several& x, const Several& y) {
    ZRT_SEVERAL(select_ge(a.of[i], b.of[i], x.of[i], y.of[i]));
  }
  ZRT_MEMBER friend Several shift_left(const Several& a, int bits) { ZRT_SEVERAL(shift_left(a.of[i], bits)); }
  ZRT_MEMBER friend Several shift_right_signed(const Several& a, int bits) {
    ZRT_SEVERAL(shift_right_signed(a.of[i], bits));
  }
  ZRT_MEMBER friend Several<Floats, kN> as_floats(const Several& a) {
    return Several<Floats, kN>::each([&](int i) __attribute__((always_inline)) { return as_floats(a.of[i]); });
  }
  ZRT_MEMBER friend Several<Ints, kN> as_ints(const Several& a) {
    return Several<Ints, kN>::each([&](int i) __attribute__((always_inline)) { return as_ints(a.of[i]); });
  }
#undef ZRT_SEVERAL
};

}  // namespace
}  // namespace zinc_rt::cpu_simd
