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

ZRT_SIMD Lanes exp(Lanes x) {
  const Lanes round = set1(12582912.0f), one = set1(1.0f);
  const Lanes shifted = fma(x, set1(1.44269504f), round), n = sub(shifted, round);
  const Lanes r = fma(n, set1(-1.42860677e-6f), fma(n, set1(-0.693145752f), x));
  Lanes p = fma(set1(1.98412698e-4f), r, set1(1.38888889e-3f));
  p = fma(p, r, set1(8.33333333e-3f));
  p = fma(p, r, set1(4.16666667e-2f));
  p = fma(p, r, set1(1.66666667e-1f));
  p = fma(p, r, set1(0.5f));
  p = add(fma(mul(p, r), r, r), one);
  const Lanes y = scale2(p, sub(bits(shifted), bits(round)));
  const Lanes bounded = select_gt(x, set1(88.72283f), set1(__builtin_inff()), y);
  return select_ge(set1(-104.0f), x, set1(0.0f), bounded);
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
