// The functions of kernels/common/exact_math.h on 16 lanes: the same operations in the same order, a branch as a
// selection. Included after a lanes header.
#pragma once

namespace zinc_rt::cpu_simd {
namespace {

ZRT_SIMD Lanes magnitude(Lanes x) {
  return select_gt(set1(0.0f), x, negate(x), x);
}

ZRT_SIMD Lanes rcp(Lanes x) {
  const Lanes a = magnitude(x), one = set1(1.0f), minus_a = negate(a);
  Lanes r = from_bits(sub(ints(0x7EF311C7), bits(a)));
  for (int i = 0; i < 4; ++i) r = fma(r, fma(minus_a, r, one), r);
  return select_gt(set1(0.0f), x, negate(r), r);
}

ZRT_SIMD Lanes pow2(Ints n) {
  return from_bits(shift_left<23>(add(n, ints(127))));
}

ZRT_SIMD Lanes scale2(Lanes x, Ints n) {
  const Ints half = shift_right<1>(n);
  return mul(mul(x, pow2(half)), pow2(sub(n, half)));
}

ZRT_SIMD Lanes div(Lanes a, Lanes b) {
  const Lanes r = rcp(b), q = mul(a, r);
  return fma(fma(negate(q), b, a), r, q);
}

ZRT_SIMD Lanes rsqrt(Lanes x) {
  Lanes r = from_bits(sub(ints(0x5F375A86), shift_right_logical<1>(bits(x))));
  const Lanes h = mul(set1(0.5f), x), half = set1(0.5f);
  for (int i = 0; i < 4; ++i) r = fma(r, fma(negate(mul(h, r)), r, half), r);
  return r;
}

struct ExpParts {
  Lanes p, lo;
  Ints n;
};
ZRT_SIMD ExpParts exp_parts(Lanes x) {
  const Lanes round = set1(12582912.0f), one = set1(1.0f);
  const Lanes shifted = fma(x, set1(1.44269504f), round), n = sub(shifted, round);
  const Lanes r = fma(n, set1(-1.42860677e-6f), fma(n, set1(-0.693145752f), x));
  Lanes p = fma(set1(1.98412698e-4f), r, set1(1.38888889e-3f));
  p = fma(p, r, set1(8.33333333e-3f));
  p = fma(p, r, set1(4.16666667e-2f));
  p = fma(p, r, set1(1.66666667e-1f));
  p = fma(p, r, set1(0.5f));
  const Lanes t = fma(mul(p, r), r, r), sum = add(t, one);
  return {sum, sub(t, sub(sum, one)), sub(bits(shifted), bits(round))};
}

ZRT_SIMD Lanes exp(Lanes x) {
  const ExpParts e = exp_parts(x);
  const Lanes bounded = select_gt(x, set1(88.72283f), set1(__builtin_inff()), scale2(e.p, e.n));
  return select_ge(set1(-104.0f), x, set1(0.0f), bounded);
}

ZRT_SIMD Lanes times_sigmoid(Lanes x, Lanes v, Lanes v_lo) {
  const Lanes zero = set1(0.0f), one = set1(1.0f);
  const Lanes a = select_gt(zero, v, v, negate(v));
  ExpParts e = exp_parts(a);
  e.lo = fma(e.p, select_gt(zero, v, v_lo, negate(v_lo)), e.lo);
  const Lanes t = scale2(e.p, e.n), s = add(one, t), s_lo = add(sub(t, sub(s, one)), scale2(e.lo, e.n));
  const Lanes r = rcp(s), product = mul(x, e.p);
  const Lanes num = select_gt(zero, v, product, x);
  const Lanes num_lo = select_gt(zero, v, fma(x, e.lo, fma(x, e.p, negate(product))), zero);
  const Lanes q = mul(num, r), minus_q = negate(q);
  const Lanes y = fma(add(fma(minus_q, s, num), fma(minus_q, s_lo, num_lo)), r, q);
  const Lanes inside = select_gt(zero, v, scale2(y, e.n), y);
  const Lanes outside = select_gt(v, zero, x, select_gt(zero, x, set1(-0.0f), zero));
  return select_gt(a, set1(-120.0f), inside, select_ge(v, v, outside, v));
}

ZRT_SIMD Lanes silu(Lanes x) {
  return times_sigmoid(x, x, set1(0.0f));
}

ZRT_SIMD Lanes gelu_tanh(Lanes x) {
  const Lanes c = set1(1.59576917f), c_lo = set1(-4.534068e-8f), k = set1(7.1354814e-2f), k_lo = set1(2.3988324e-9f);
  const Lanes x2 = mul(x, x), x2_lo = fma(x, x, negate(x2));
  const Lanes p = mul(k, x2), p_lo = add(fma(k, x2, negate(p)), fma(k, x2_lo, mul(k_lo, x2)));
  const Lanes s = add(c, p), back = sub(s, c);
  const Lanes s_lo = add(add(sub(c, sub(s, back)), sub(p, back)), add(p_lo, c_lo));
  const Lanes v = mul(x, s);
  const Lanes y = times_sigmoid(x, v, add(fma(x, s, negate(v)), mul(x, s_lo)));
  return select_gt(x, set1(12.0f), x, select_gt(set1(-14.0f), x, set1(-0.0f), y));
}

ZRT_SIMD Lanes tanh(Lanes x) {
  const Lanes a = magnitude(x), zero = set1(0.0f), one = set1(1.0f);
  const Lanes s = mul(a, a);
  Lanes p = fma(set1(-5.70498872745e-3f), s, set1(2.06390887954e-2f));
  p = fma(p, s, set1(-5.37397155531e-2f));
  p = fma(p, s, set1(1.33314422036e-1f));
  p = fma(p, s, set1(-3.33332819422e-1f));
  const Lanes small = fma(mul(p, s), x, x);
  Lanes t = fma(set1(-2.0f), rcp(add(one, exp(mul(set1(2.0f), a)))), one);
  t = select_ge(a, set1(10.0f), one, t);
  return select_gt(set1(0.625f), a, small, select_gt(zero, x, negate(t), t));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd
