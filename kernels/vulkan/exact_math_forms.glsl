// Functions of exact_math.glsl that are needed with two kinds of fused multiply-add. FMA stands for the fused
// multiply-add, and NAME makes the name of a function. exact_math.glsl includes this file with ZRT_FMA, which is right
// for all numbers, and, if usual_fma differs from it, again with usual_fma.
float NAME(rcp_of_positive)(float x) {
  float r = uintBitsToFloat(0x7EF311C7u - floatBitsToUint(x));
  [[dont_unroll]] for (int i = 0; i < 4; ++i) r = FMA(r, FMA(-x, r, 1.0), r);
  return r;
}
float NAME(rsqrt)(float x) {
  float r = uintBitsToFloat(0x5F375A86u - (floatBitsToUint(x) >> 1)), h = 0.5 * x;
  [[dont_unroll]] for (int i = 0; i < 4; ++i) r = FMA(r, FMA(-(h * r), r, 0.5), r);
  return r;
}
ExpParts NAME(exp_parts)(float x) {
  float shifted = FMA(x, 1.44269504, kRound), n = shifted - kRound;
  float r = FMA(n, -0.693145752, x);
  r = FMA(n, -1.42860677e-6, r);
  float p = 1.98412698e-4;
  p = FMA(p, r, 1.38888889e-3);
  p = FMA(p, r, 8.33333333e-3);
  p = FMA(p, r, 4.16666667e-2);
  p = FMA(p, r, 1.66666667e-1);
  p = FMA(p, r, 0.5);
  float t = FMA(p * r, r, r), sum = t + 1.0;
  return ExpParts(sum, t - (sum - 1.0), int(floatBitsToUint(shifted) - floatBitsToUint(kRound)));
}
float NAME(times_sigmoid)(float x, float v, float v_lo) {
  float minus = v < 0.0 ? v : -v;
  bool is_usual = minus > -120.0;
  float a = is_usual ? minus : 0.0, other = v != v ? v : (v > 0.0 ? x : (x < 0.0 ? -0.0 : 0.0));
  ExpParts e = NAME(exp_parts)(a);
  e.lo = FMA(e.p, v < 0.0 ? v_lo : -v_lo, e.lo);
  float t = scale2(e.p, e.n), s = 1.0 + t, s_lo = (t - (s - 1.0)) + scale2(e.lo, e.n);
  float r = NAME(rcp_of_positive)(s);
  float p = v < 0.0 ? e.p : 1.0, p_lo = v < 0.0 ? e.lo : 0.0;
  float num = x * p, num_lo = FMA(x, p_lo, FMA(x, p, -num));
  float q = num * r;
  float y = FMA(FMA(-q, s, num) + FMA(-q, s_lo, num_lo), r, q);
  return is_usual ? (v < 0.0 ? scale2(y, e.n) : y) : other;
}
