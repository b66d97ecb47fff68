// Elementary functions with the same bits on every tier: fma, add, multiply and integer operations on the bits only; no
// division, no square root, no round instruction, no table. C++17, for host and device compilers. Within 2 ulp of the
// true value over the stated domain (tests_cpp/kernels/exact_math_test.cpp sweeps it). NaN gives NaN.
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

// Adding and subtracting 1.5 * 2^23 rounds |x| < 2^22 to the nearest integer, ties to even.
constexpr float kRound = 12582912.0f;

ZRT_HD float round_int(float x) {
  return (x + kRound) - kRound;
}

// 1/x for normal x with 2^-125 <= |x| <= 2^125: a guess from the bits, then Newton.
ZRT_HD float rcp(float x) {
  float r = ZRT_BITS_FLOAT(0x7EF311C7u - ZRT_FLOAT_BITS(x < 0 ? -x : x));
  const float a = x < 0 ? -x : x;
  for (int i = 0; i < 4; ++i) r = ZRT_FMA(r, ZRT_FMA(-a, r, 1.0f), r);
  return x < 0 ? -r : r;
}

// a/b for b as in rcp and a/b normal: the quotient by rcp, then one correction by its remainder.
ZRT_HD float div(float a, float b) {
  const float r = rcp(b), q = a * r;
  return ZRT_FMA(ZRT_FMA(-q, b, a), r, q);
}

// 1/sqrt(x) for normal x > 0 up to 2^125.
ZRT_HD float rsqrt(float x) {
  float r = ZRT_BITS_FLOAT(0x5F375A86u - (ZRT_FLOAT_BITS(x) >> 1));
  const float h = 0.5f * x;
  for (int i = 0; i < 4; ++i) r = ZRT_FMA(r, ZRT_FMA(-(h * r), r, 0.5f), r);
  return r;
}

// 2^n for integer n in [-126, 127].
ZRT_HD float pow2(int32_t n) {
  return ZRT_BITS_FLOAT((uint32_t)(n + 127) << 23);
}

// e^x: x = n ln 2 + r with |r| <= ln 2 / 2, the series of e^r to degree 7, times 2^n in two steps so that denormal
// results round once.
ZRT_HD float exp(float x) {
  if (!(x > -104.0f)) return x == x ? 0.0f : x;
  if (x > 88.72283f) return ZRT_BITS_FLOAT(0x7F800000u);
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
  p = ZRT_FMA(p * r, r, r) + 1.0f;
  const int32_t exponent = (int32_t)(ZRT_FLOAT_BITS(shifted) - ZRT_FLOAT_BITS(kRound));
  const int32_t half = exponent >> 1;
  return p * pow2(half) * pow2(exponent - half);
}

// 1 / (1 + e^-x)
ZRT_HD float sigmoid(float x) {
  const float e = exp(x < 0 ? x : -x);
  const float r = rcp(1.0f + e);
  return x < 0 ? e * r : (x == x ? r : x);
}

ZRT_HD float silu(float x) {
  return x * sigmoid(x);
}

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), written as x sigmoid(2u).
ZRT_HD float gelu_tanh(float x) {
  const float u = 1.5957691216f * ZRT_FMA(0.044715f * x * x, x, x);
  return x * sigmoid(u);
}

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

// ln(1 + e^x) = max(x, 0) + ln(1 + t), t = e^-|x|; ln(1 + t) = 2 atanh(t / (2 + t)) by its series to degree 17.
ZRT_HD float softplus(float x) {
  if (x != x) return x;
  const float t = exp(x < 0 ? x : -x);
  const float s = div(t, 2.0f + t), s2 = s * s;
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
