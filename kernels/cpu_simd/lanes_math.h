// Defines the functions of kernels/common/exact_math.h on 16 lanes. They do the same operations in the same order, with
// selections instead of branches, so they compute the same bits. Included after a lanes header. F is Floats, or several
// of them (lanes_several.h).
#pragma once

#include "kernels/cpu_simd/lanes_several.h"

namespace zinc_rt::cpu_simd {
namespace {

template <class F>
ZRT_SIMD F magnitude(const F& x) {
  return select_gt(splat(0.0f), x, negate(x), x);
}

template <class F>
ZRT_SIMD F rcp(const F& x) {
  const F a = magnitude(x), one = splat(1.0f), minus_a = negate(a);
  F r = as_floats(splat(0x7EF311C7) - as_ints(a));
  for (int i = 0; i < 4; ++i) r = fma(r, fma(minus_a, r, one), r);
  return select_gt(splat(0.0f), x, negate(r), r);
}

template <class I>
ZRT_SIMD auto pow2(const I& n) {
  return as_floats(shift_left(n + splat(127), 23));
}

template <class F, class I>
ZRT_SIMD F scale2(const F& x, const I& n) {
  const I half = shift_right_signed(n, 1);
  return x * pow2(half) * pow2(n - half);
}

ZRT_SIMD Floats div(Floats a, Floats b) {
  const Floats r = rcp(b), q = a * r;
  return fma(fma(negate(q), b, a), r, q);
}

ZRT_SIMD Floats rsqrt(Floats x) {
  Floats r = as_floats(splat(0x5F375A86) - shift_right(as_ints(x), 1));
  const Floats h = splat(0.5f) * x, half = splat(0.5f);
  for (int i = 0; i < 4; ++i) r = fma(r, fma(negate(h * r), r, half), r);
  return r;
}

// Computes e^x as (1 + t) 2^n, where n is an integer. Returns t, and sets `shifted` to the float n + 1.5 * 2^23, whose
// low bits are n (see exp_power()).
template <class F>
ZRT_SIMD F exp_part(const F& x, F& shifted) {
  const F round = splat(12582912.0f);
  shifted = fma(x, splat(1.44269504f), round);
  const F n = shifted - round;
  const F r = fma(n, splat(-1.42860677e-6f), fma(n, splat(-0.693145752f), x));
  F p = fma(splat(1.98412698e-4f), r, splat(1.38888889e-3f));
  p = fma(p, r, splat(8.33333333e-3f));
  p = fma(p, r, splat(4.16666667e-2f));
  p = fma(p, r, splat(1.66666667e-1f));
  p = fma(p, r, splat(0.5f));
  return fma(p * r, r, r);
}
template <class F>
ZRT_SIMD auto exp_power(const F& shifted) {
  return as_ints(shifted) - as_ints(splat(12582912.0f));
}
template <class F>
struct ExpParts {
  F p, lo;
  decltype(as_ints(F())) n;
};
template <class F>
ZRT_SIMD ExpParts<F> exp_parts(const F& x) {
  F shifted;
  const F one = splat(1.0f), t = exp_part(x, shifted), sum = t + one;
  return {sum, t - (sum - one), exp_power(shifted)};
}

ZRT_SIMD Floats exp(Floats x) {
  Floats shifted;
  const Floats p = exp_part(x, shifted) + splat(1.0f);
  const Floats bounded = select_gt(x, splat(88.72283f), splat(__builtin_inff()), scale2(p, exp_power(shifted)));
  return select_ge(splat(-104.0f), x, splat(0.0f), bounded);
}
// Computes exp for x in [-87, 0] or NaN. It does the operations of exp() that such x need, in the same order.
ZRT_SIMD Floats exp_near(const Floats& x) {
  Floats shifted;
  const Floats t = exp_part(x, shifted);
  return (t + splat(1.0f)) * pow2(exp_power(shifted));
}

template <class F>
ZRT_SIMD F times_sigmoid(const F& x, const F& v, const F& v_lo) {
  const F zero = splat(0.0f), one = splat(1.0f);
  const F a = select_gt(zero, v, v, negate(v));
  ExpParts e = exp_parts(a);
  e.lo = fma(e.p, select_gt(zero, v, v_lo, negate(v_lo)), e.lo);
  const F t = scale2(e.p, e.n), s = one + t, s_lo = (t - (s - one)) + scale2(e.lo, e.n);
  const F r = rcp(s), product = x * e.p;
  const F num = select_gt(zero, v, product, x);
  const F num_lo = select_gt(zero, v, fma(x, e.lo, fma(x, e.p, negate(product))), zero);
  const F q = num * r, minus_q = negate(q);
  const F y = fma(fma(minus_q, s, num) + fma(minus_q, s_lo, num_lo), r, q);
  const F inside = select_gt(zero, v, scale2(y, e.n), y);
  const F outside = select_gt(v, zero, x, select_gt(zero, x, splat(-0.0f), zero));
  return select_gt(a, splat(-120.0f), inside, select_ge(v, v, outside, v));
}

template <class F>
ZRT_SIMD F silu(const F& x) {
  return times_sigmoid(x, x, F(splat(0.0f)));
}

template <class F>
ZRT_SIMD F gelu_tanh(const F& x) {
  const F c = splat(1.59576917f), c_lo = splat(-4.534068e-8f), k = splat(7.1354814e-2f), k_lo = splat(2.3988324e-9f);
  const F x2 = x * x, x2_lo = fma(x, x, negate(x2));
  const F p = k * x2, p_lo = fma(k, x2, negate(p)) + fma(k, x2_lo, k_lo * x2);
  const F s = c + p, back = s - c;
  const F s_lo = ((c - (s - back)) + (p - back)) + (p_lo + c_lo);
  const F v = x * s;
  const F y = times_sigmoid(x, v, fma(x, s, negate(v)) + x * s_lo);
  return select_gt(x, splat(12.0f), x, select_gt(splat(-14.0f), x, splat(-0.0f), y));
}

template <class F>
ZRT_SIMD F swiglu_oai(const F& gate, const F& up) {
  const F alpha = splat(1.702f), limit = splat(7.0f), minus = splat(-7.0f);
  const F g = select_gt(gate, limit, limit, gate), most = select_gt(up, limit, limit, up);
  const F u = select_gt(minus, most, minus, most);
  const F v = alpha * g;
  return times_sigmoid(g, v, fma(alpha, g, negate(v))) * (u + F(splat(1.0f)));
}

ZRT_SIMD Floats tanh(Floats x) {
  const Floats a = magnitude(x), zero = splat(0.0f), one = splat(1.0f);
  const Floats s = a * a;
  Floats p = fma(splat(-5.70498872745e-3f), s, splat(2.06390887954e-2f));
  p = fma(p, s, splat(-5.37397155531e-2f));
  p = fma(p, s, splat(1.33314422036e-1f));
  p = fma(p, s, splat(-3.33332819422e-1f));
  const Floats small = fma(p * s, x, x);
  Floats t = fma(splat(-2.0f), rcp(one + exp(splat(2.0f) * a)), one);
  t = select_ge(a, splat(10.0f), one, t);
  return select_gt(splat(0.625f), a, small, select_gt(zero, x, negate(t), t));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
