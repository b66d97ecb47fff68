// Elementary functions that have the same bits on every tier. They use only fma, addition, multiplication and integer
// operations on the bits; no division, square root, rounding instruction or table. For host and device compilers
// (C++17).
// Each result is within 2 ulp of the true value over the domain that the function's comment states, or for all floats
// if it states none (tests_cpp/kernels/exact_math_test.cpp checks this). NaN gives NaN. If the true value is -0, the
// result may be +0.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
#define ZRT_HD __host__ __device__ inline
#else
#define ZRT_HD inline
#endif

#if defined(__CUDA_ARCH__)
#define ZRT_FMA(a, b, c) __fmaf_rn((a), (b), (c))
#define ZRT_FLOAT_BITS(x) __float_as_uint(x)
#define ZRT_BITS_FLOAT(u) __uint_as_float(u)
#else
#define ZRT_FMA(a, b, c) __builtin_fmaf((a), (b), (c))
#define ZRT_FLOAT_BITS(x) __builtin_bit_cast(uint32_t, (float)(x))
#define ZRT_BITS_FLOAT(u) __builtin_bit_cast(float, (uint32_t)(u))
#endif

namespace zinc_rt::exact {

// Adding and then subtracting kRound = 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even.
constexpr float kRound = 12582912.0f;

ZRT_HD float round_int(float x) {
  return (x + kRound) - kRound;
}

// Returns 1/x, for 2^-125 <= x <= 2^125; rcp() also for negative x. It begins with a guess from the bits and makes four
// steps of Newton's method.
ZRT_HD float rcp_of_positive(float x) {
  float r = ZRT_BITS_FLOAT(0x7EF311C7u - ZRT_FLOAT_BITS(x));
  for (int i = 0; i < 4; ++i) r = ZRT_FMA(r, ZRT_FMA(-x, r, 1.0f), r);
  return r;
}
ZRT_HD float rcp(float x) {
  const float r = rcp_of_positive(x < 0 ? -x : x);
  return x < 0 ? -r : r;
}

// Returns a/b, for b in the domain of rcp() and a/b normal. The quotient by rcp() is corrected once by its remainder.
ZRT_HD float div(float a, float b) {
  const float r = rcp(b), q = a * r;
  return ZRT_FMA(ZRT_FMA(-q, b, a), r, q);
}

// Returns 1/sqrt(x), for 2^-125 <= x <= 2^125.
ZRT_HD float rsqrt(float x) {
  float r = ZRT_BITS_FLOAT(0x5F375A86u - (ZRT_FLOAT_BITS(x) >> 1));
  const float h = 0.5f * x;
  for (int i = 0; i < 4; ++i) r = ZRT_FMA(r, ZRT_FMA(-(h * r), r, 0.5f), r);
  return r;
}

// Returns 2^n, for n in [-126, 127].
ZRT_HD float pow2(int32_t n) {
  return ZRT_BITS_FLOAT((uint32_t)(n + 127) << 23);
}

// e^x as (p + lo) * 2^n, for -150 <= x <= 89. x is split into n ln 2 + r with |r| <= ln 2 / 2. p is the series of e^r
// to degree 7, and lo is the rounding error of its last addition.
struct ExpParts {
  float p, lo;
  int32_t n;
};
ZRT_HD ExpParts exp_parts(float x) {
  const float shifted = ZRT_FMA(x, 1.44269504f, kRound);
  const float n = shifted - kRound;
  float r = ZRT_FMA(n, -0.693145752f, x);
  r = ZRT_FMA(n, -1.42860677e-6f, r);
  float p = 1.98412698e-4f;
  p = ZRT_FMA(p, r, 1.38888889e-3f);
  p = ZRT_FMA(p, r, 8.33333333e-3f);
  p = ZRT_FMA(p, r, 4.16666667e-2f);
  p = ZRT_FMA(p, r, 1.66666667e-1f);
  p = ZRT_FMA(p, r, 0.5f);
  const float t = ZRT_FMA(p * r, r, r), sum = t + 1.0f;
  return ExpParts{sum, t - (sum - 1.0f), (int32_t)(ZRT_FLOAT_BITS(shifted) - ZRT_FLOAT_BITS(kRound))};
}

// Returns x * 2^n, for n in [-252, 254]. Two multiplications are needed, because 2^n may not be a float; a denormal
// result is rounded only once.
ZRT_HD float scale2(float x, int32_t n) {
  const int32_t half = n >> 1;
  return x * pow2(half) * pow2(n - half);
}

// Returns e^x: 0 for x below -104, infinity for x above 88.72283.
ZRT_HD float exp(float x) {
  if (!(x > -104.0f)) return x == x ? 0.0f : x;
  if (x > 88.72283f) return ZRT_BITS_FLOAT(0x7F800000u);
  const ExpParts e = exp_parts(x);
  return scale2(e.p, e.n);
}

// Returns x / (1 + e^-(v + v_lo)), for x below 2^100; v_lo is the rounding error of v. The quotient by rcp() is
// corrected by a remainder that includes the rounding errors of the steps before. Special cases (v below -120 or above
// 120, NaN) are selected at the end instead of returned early, so that a compiler can compute several values side by
// side.
ZRT_HD float times_sigmoid(float x, float v, float v_lo) {
  const float minus = v < 0 ? v : -v;
  const bool is_usual = minus > -120.0f;
  const float a = is_usual ? minus : 0.0f, other = v != v ? v : (v > 0 ? x : (x < 0 ? -0.0f : 0.0f));
  ExpParts e = exp_parts(a);
  e.lo = ZRT_FMA(e.p, v < 0 ? v_lo : -v_lo, e.lo);
  const float t = scale2(e.p, e.n), s = 1.0f + t, s_lo = (t - (s - 1.0f)) + scale2(e.lo, e.n);
  const float r = rcp_of_positive(s);
  const float p = v < 0 ? e.p : 1.0f, p_lo = v < 0 ? e.lo : 0.0f;
  const float num = x * p, num_lo = ZRT_FMA(x, p_lo, ZRT_FMA(x, p, -num));
  const float q = num * r;
  const float y = ZRT_FMA(ZRT_FMA(-q, s, num) + ZRT_FMA(-q, s_lo, num_lo), r, q);
  return is_usual ? (v < 0 ? scale2(y, e.n) : y) : other;
}

// Returns 1 / (1 + e^-x).
ZRT_HD float sigmoid(float x) {
  return times_sigmoid(1.0f, x, 0.0f);
}

// Returns x / (1 + e^-x). Minus infinity gives -0.
ZRT_HD float silu(float x) {
  return times_sigmoid(x, x, 0.0f);
}

// Returns x/2 * (1 + tanh(u)) with u = sqrt(2/pi) * (x + 0.044715 x^3), computed as x * sigmoid(2u). A rounding error
// of 2u would become a relative error of e^2u. Therefore 2u = x * (c + k x^2) is carried in two floats, and so are the
// constants c and k.
ZRT_HD float gelu_tanh(float x) {
  const float c = 1.59576917f, c_lo = -4.534068e-8f, k = 7.1354814e-2f, k_lo = 2.3988324e-9f;
  const float x2 = x * x, x2_lo = ZRT_FMA(x, x, -x2);
  const float p = k * x2, p_lo = ZRT_FMA(k, x2, -p) + ZRT_FMA(k, x2_lo, k_lo * x2);
  const float s = c + p, back = s - c, s_lo = ((c - (s - back)) + (p - back)) + (p_lo + c_lo);
  const float v = x * s;
  const float y = times_sigmoid(x, v, ZRT_FMA(x, s, -v) + x * s_lo);
  return x > 12.0f ? x : (x < -14.0f ? -0.0f : y);
}

// Returns g * sigmoid(1.702 g) * (u + 1), with g = gate but at most 7, and u = up between -7 and 7 (gpt-oss). A
// rounding error of 1.702 g would become a relative error of e^(1.702 g), so the product is carried in two floats.
ZRT_HD float swiglu_oai(float gate, float up) {
  const float alpha = 1.702f, limit = 7.0f;
  const float g = gate > limit ? limit : gate, least = up > limit ? limit : up, u = least < -limit ? -limit : least;
  const float v = alpha * g;
  return times_sigmoid(g, v, ZRT_FMA(alpha, g, -v)) * (u + 1.0f);
}

// gelu(x) = x * Phi(x), where Phi is the cumulative normal distribution. For a >= 0, Phi(-a) = e^(-a^2 / 2) * P(u) with
// u = 1 / (1 + 0.4 a). P is a polynomial without a constant term, fitted to 2^-25. A rounding error of a^2 / 2 would
// become a relative error of e^(-a^2 / 2), so a^2 / 2 is carried in two floats. So are u and the last steps of P,
// because their roundings would add up.
struct FloatPair {
  float high, low;
};
// Returns p * u + c.
ZRT_HD FloatPair horner_step(FloatPair p, FloatPair u, float c) {
  const float m = p.high * u.high, m_lo = ZRT_FMA(p.high, u.high, -m) + ZRT_FMA(p.high, u.low, p.low * u.high);
  const float sum = m + c, back = sum - m;
  return FloatPair{sum, ((m - (sum - back)) + (c - back)) + m_lo};
}
ZRT_HD float gelu(float x) {
  const float size = x < 0 ? -x : x, a = size < 15.0f ? size : 15.0f;
  const float d = ZRT_FMA(a, 0.4f, 1.0f), d_lo = ZRT_FMA(a, 0.4f, -(d - 1.0f)), r = rcp_of_positive(d);
  const FloatPair u{r, r * ZRT_FMA(-r, d_lo, ZRT_FMA(-r, d, 1.0f))};
  float first = 0.0329349227f;
  first = ZRT_FMA(first, r, -0.180550367f);
  first = ZRT_FMA(first, r, 0.390616f);
  first = ZRT_FMA(first, r, -0.38439244f);
  first = ZRT_FMA(first, r, 0.127430364f);
  first = ZRT_FMA(first, r, -0.0307039134f);
  first = ZRT_FMA(first, r, 0.0925217718f);
  FloatPair p = horner_step(FloatPair{first, 0.0f}, u, 0.132918686f);
  p = horner_step(p, u, 0.159650043f);
  p = horner_step(p, u, 0.159574941f);
  p = horner_step(p, u, 0.0f);
  const float half = -0.5f * a, v = half * a, v_lo = ZRT_FMA(half, a, -v);
  const ExpParts e = exp_parts(v);
  const float e_lo = ZRT_FMA(e.p, v_lo, e.lo), q = e.p * p.high;
  const float q_lo = ZRT_FMA(e.p, p.high, -q) + ZRT_FMA(e.p, p.low, e_lo * p.high);
  const float y = x < 0 ? scale2(ZRT_FMA(x, q, x * q_lo), e.n) : ZRT_FMA(-x, scale2(q + q_lo, e.n), x);
  return x != x ? x : (x > 15.0f ? x : (x < -15.0f ? -0.0f : y));
}

// Returns tanh(x): x times a polynomial in x^2 for |x| < 0.625, else 1 - 2 / (1 + e^2|x|) with the sign of x.
ZRT_HD float tanh(float x) {
  const float a = x < 0 ? -x : x;
  if (a < 0.625f) {
    const float s = a * a;
    float p = -5.70498872745e-3f;
    p = ZRT_FMA(p, s, 2.06390887954e-2f);
    p = ZRT_FMA(p, s, -5.37397155531e-2f);
    p = ZRT_FMA(p, s, 1.33314422036e-1f);
    p = ZRT_FMA(p, s, -3.33332819422e-1f);
    return ZRT_FMA(p * s, x, x);
  }
  if (!(a < 10.0f)) return a != a ? x : (x < 0 ? -1.0f : 1.0f);
  const float t = ZRT_FMA(-2.0f, rcp(1.0f + exp(2.0f * a)), 1.0f);
  return x < 0 ? -t : t;
}

// Returns ln(1 + e^x) = max(x, 0) + ln(1 + t), with t = e^-|x|. ln(1 + t) is 2 atanh(t / (2 + t)), by its series to
// degree 17.
ZRT_HD float softplus(float x) {
  if (!(x > -104.0f)) return x == x ? 0.0f : x;
  if (x > 104.0f) return x;
  const ExpParts e = exp_parts(x < 0 ? x : -x);
  const float t = scale2(e.p, e.n), t_lo = scale2(e.lo, e.n);
  if (x < -20.0f) return t;  // the relative error of t as ln(1 + t) is below 2^-29
  const float d = 2.0f + t, d_lo = (t - (d - 2.0f)) + t_lo, r = rcp(d), q = t * r;
  const float s = ZRT_FMA(ZRT_FMA(-q, d, t) + ZRT_FMA(-q, d_lo, t_lo), r, q), s2 = s * s;
  float p = 1.0f / 17;
  p = ZRT_FMA(p, s2, 1.0f / 15);
  p = ZRT_FMA(p, s2, 1.0f / 13);
  p = ZRT_FMA(p, s2, 1.0f / 11);
  p = ZRT_FMA(p, s2, 1.0f / 9);
  p = ZRT_FMA(p, s2, 1.0f / 7);
  p = ZRT_FMA(p, s2, 1.0f / 5);
  p = ZRT_FMA(p, s2, 1.0f / 3);
  const float half = ZRT_FMA(p * s2, s, s);
  return ZRT_FMA(2.0f, half, x > 0 ? x : 0.0f);
}

}  // namespace zinc_rt::exact
