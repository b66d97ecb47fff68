// The functions of kernels/common/exact_math.h in GLSL, except gelu(). The self-test compares them with the C++ ones,
// bit for bit (cpp/vulkan/self_test.cpp).
//
// Drivers differ in GLSL's fma: llvmpipe rounds the product and the sum separately, and NVIDIA's takes denormals for
// zeros. Therefore the build compiles every kernel that includes this file in five forms, each with another definition
// of ZRT_FMA. A device uses the first of them that its self-test proves:
//   ZRT_FMA_NATIVE            GLSL's fma
//   ZRT_FMA_GUARDED_DOUBLES   GLSL's fma, but fma_of_doubles() if an operand or the result may be a denormal
//   ZRT_FMA_GUARDED           GLSL's fma, but fma_bits() of fma_bits.glsl if an operand or the result may be a
//                             denormal. It is inlined in place of each fma, and the many instructions cost time even if
//                             they rarely run; with doubles they are fewer
//   ZRT_FMA_DOUBLES           fma_of_doubles()
//   ZRT_FMA_INTEGERS          fma_bits()
// usual_fma is the same without a guard, for sums in which neither an operand nor the result can be a denormal.
#extension GL_EXT_control_flow_attributes : require
#if defined(ZRT_FMA_DOUBLES) || defined(ZRT_FMA_GUARDED_DOUBLES)
// Returns fma(a, b, c). As a double the product is exact. The sum is rounded to odd: if it is not exact, its last bit
// becomes 1. Then the conversion to float rounds correctly, as if from the exact sum.
float fma_of_doubles(float a, float b, float c) {
  double p = double(a) * double(b), d = double(c), s = p + d, back = s - p, err = (p - (s - back)) + (d - back);
  uvec2 u = unpackDouble2x32(s);
  if (err != 0.0 && (u.x & 1u) == 0u && s - s == 0.0) {
    bool away = (err > 0.0) == (s > 0.0);
    if (away) u.x |= 1u;                                   // the exact sum is larger: the last bit, 0, becomes 1
    else u = uvec2(u.x - 1u, u.x == 0u ? u.y - 1u : u.y);  // it is smaller: 1 is subtracted
  }
  return float(packDouble2x32(u));
}
#endif
#if defined(ZRT_FMA_DOUBLES)
#define ZRT_FMA fma_of_doubles
#define usual_fma fma_of_doubles
#elif defined(ZRT_FMA_INTEGERS)
#include "fma_bits.glsl"
#define usual_fma ZRT_FMA
float ZRT_FMA(float a, float b, float c) {
  return uintBitsToFloat(fma_bits(floatBitsToUint(a), floatBitsToUint(b), floatBitsToUint(c)));
}
#elif defined(ZRT_FMA_GUARDED) || defined(ZRT_FMA_GUARDED_DOUBLES)
#define usual_fma fma
#define ZRT_FMA_HAS_GUARD
#ifdef ZRT_FMA_GUARDED
#include "fma_bits.glsl"
float exact_fma(float a, float b, float c) {
  return uintBitsToFloat(fma_bits(floatBitsToUint(a), floatBitsToUint(b), floatBitsToUint(c)));
}
#else
#define exact_fma fma_of_doubles
#endif
// Whether x is the bits of a denormal; 0 is none.
bool is_denormal(uint x) { return (x << 1) - 1u < 0x00FFFFFFu; }
float ZRT_FMA(float a, float b, float c) {
  float y = fma(a, b, c);
  uint ua = floatBitsToUint(a), ub = floatBitsToUint(b), uc = floatBitsToUint(c), uy = floatBitsToUint(y);
  // If a factor is zero, the result is c, so a tiny result is right.
  bool is_tiny = (uy & 0x7F800000u) <= 0x00800000u && (ua << 1) != 0u && (ub << 1) != 0u;
  if (is_tiny || is_denormal(ua) || is_denormal(ub) || is_denormal(uc)) return exact_fma(a, b, c);
  return y;
}
#elif defined(ZRT_FMA_NATIVE)
#define ZRT_FMA fma
#define usual_fma fma
#endif

#define kInfinity uintBitsToFloat(0x7F800000u)
#define kNan uintBitsToFloat(0x7FC00000u)
const float kRound = 12582912.0;
// Returns |x|, but infinity if x is a NaN. So the largest magnitude of several numbers is finite only if all of them
// are. It works on the bits, because drivers assume that x == x.
float magnitude(float x) { return uintBitsToFloat(min(floatBitsToUint(x) & 0x7FFFFFFFu, 0x7F800000u)); }

float round_int(float x) { return (x + kRound) - kRound; }
float pow2(int n) { return uintBitsToFloat(uint(n + 127) << 23); }
float scale2(float x, int n) {
  int first = n >> 1;
  return x * pow2(first) * pow2(n - first);
}
struct ExpParts {
  float p, lo;
  int n;
};

#define NAME(function) function##_of_all
#define FMA ZRT_FMA
#include "exact_math_forms.glsl"
#undef NAME
#undef FMA
#ifdef ZRT_FMA_HAS_GUARD
#define NAME(function) function##_of_usual
#define FMA usual_fma
#include "exact_math_forms.glsl"
#undef NAME
#undef FMA
// Whether 2^-60 <= |x| < 2^60.
bool is_usual_size(float x) { return (floatBitsToUint(x) & 0x7FFFFFFFu) - 0x21800000u < 0x3C000000u; }
#else
#define rcp_of_positive_of_usual rcp_of_positive_of_all
#define rsqrt_of_usual rsqrt_of_all
#define exp_parts_of_usual exp_parts_of_all
#define times_sigmoid_of_usual times_sigmoid_of_all
bool is_usual_size(float x) { return true; }
#endif

// usual_fma is right if x is of usual size: in Newton's steps, 1 - x r is a multiple of 2^-48, so neither it nor r is a
// denormal.
float rcp_of_positive(float x) { return is_usual_size(x) ? rcp_of_positive_of_usual(x) : rcp_of_positive_of_all(x); }
float rcp(float x) {
  float r = rcp_of_positive(x < 0.0 ? -x : x);
  return x < 0.0 ? -r : r;
}
// usual_fma is right if a and b are of usual size, because the remainder a - q b is 0 or at least 2^-108.
float exact_div(float a, float b) {
  float r = rcp(b), q = a * r;
  if (is_usual_size(a) && is_usual_size(b)) return usual_fma(usual_fma(-q, b, a), r, q);
  return ZRT_FMA(ZRT_FMA(-q, b, a), r, q);
}
// usual_fma is right if x is of usual size, as in rcp_of_positive().
float rsqrt(float x) { return is_usual_size(x) ? rsqrt_of_usual(x) : rsqrt_of_all(x); }
// usual_fma is right for all x that reach exp_parts(). There r, the rest of x beside n ln 2, is x itself or a multiple
// of 2^-43. If r is a denormal, what is computed from it is added to 1 or to a coefficient and is lost in the sum,
// whatever it is.
float exact_exp(float x) {
  if (!(x > -104.0)) return x == x ? 0.0 : x;
  if (x > 88.72283) return kInfinity;
  ExpParts e = exp_parts_of_usual(x);
  return scale2(e.p, e.n);
}
// Whether times_sigmoid() may use usual_fma: v_lo is 0, 2^-20 <= |v| < 2^4, and 2^-20 <= |x| < 2^20. Then every term is
// 0 or no denormal. The one exception is the product of the quotient and s_lo; if it is a denormal, it changes no sum.
bool is_usual_sigmoid(float x, float v, float v_lo) {
  uint of_x = floatBitsToUint(x) & 0x7FFFFFFFu, of_v = floatBitsToUint(v) & 0x7FFFFFFFu;
  return v_lo == 0.0 && of_v - 0x35800000u < 0x0C000000u && of_x - 0x35800000u < 0x14000000u;
}
float times_sigmoid(float x, float v, float v_lo) {
  return is_usual_sigmoid(x, v, v_lo) ? times_sigmoid_of_usual(x, v, v_lo) : times_sigmoid_of_all(x, v, v_lo);
}
float sigmoid(float x) { return times_sigmoid(1.0, x, 0.0); }
float silu(float x) { return times_sigmoid(x, x, 0.0); }
float gelu_tanh(float x) {
  float c = 1.59576917, c_lo = -4.534068e-8, k = 7.1354814e-2, k_lo = 2.3988324e-9;
  float x2 = x * x, x2_lo = ZRT_FMA(x, x, -x2);
  float p = k * x2, p_lo = ZRT_FMA(k, x2, -p) + ZRT_FMA(k, x2_lo, k_lo * x2);
  float s = c + p, back = s - c, s_lo = ((c - (s - back)) + (p - back)) + (p_lo + c_lo);
  float v = x * s;
  float y = times_sigmoid(x, v, ZRT_FMA(x, s, -v) + x * s_lo);
  return x > 12.0 ? x : (x < -14.0 ? -0.0 : y);
}
float exact_tanh(float x) {
  float a = x < 0.0 ? -x : x;
  if (a < 0.625) {
    float s = a * a;
    float p = -5.70498872745e-3;
    p = ZRT_FMA(p, s, 2.06390887954e-2);
    p = ZRT_FMA(p, s, -5.37397155531e-2);
    p = ZRT_FMA(p, s, 1.33314422036e-1);
    p = ZRT_FMA(p, s, -3.33332819422e-1);
    return ZRT_FMA(p * s, x, x);
  }
  if (!(a < 10.0)) return a != a ? x : (x < 0.0 ? -1.0 : 1.0);
  float t = ZRT_FMA(-2.0, rcp(1.0 + exact_exp(2.0 * a)), 1.0);
  return x < 0.0 ? -t : t;
}

float softplus(float x) {
  if (!(x > -104.0)) return x == x ? 0.0 : x;
  if (x > 104.0) return x;
  ExpParts e = exp_parts_of_all(x < 0.0 ? x : -x);
  float t = scale2(e.p, e.n), t_lo = scale2(e.lo, e.n);
  if (x < -20.0) return t;
  float d = 2.0 + t, d_lo = (t - (d - 2.0)) + t_lo, r = rcp(d), q = t * r;
  float s = ZRT_FMA(ZRT_FMA(-q, d, t) + ZRT_FMA(-q, d_lo, t_lo), r, q), s2 = s * s;
  float p = 1.0 / 17.0;
  p = ZRT_FMA(p, s2, 1.0 / 15.0);
  p = ZRT_FMA(p, s2, 1.0 / 13.0);
  p = ZRT_FMA(p, s2, 1.0 / 11.0);
  p = ZRT_FMA(p, s2, 1.0 / 9.0);
  p = ZRT_FMA(p, s2, 1.0 / 7.0);
  p = ZRT_FMA(p, s2, 1.0 / 5.0);
  p = ZRT_FMA(p, s2, 1.0 / 3.0);
  float half_of_it = ZRT_FMA(p * s2, s, s);
  return ZRT_FMA(2.0, half_of_it, x > 0.0 ? x : 0.0);
}

// Returns the sum of 16 lanes, in the order of kernels/common/fold.h.
float fold16(float lane[16]) {
  for (int width = 8; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] = lane[l] + lane[l + width];
  return lane[0];
}
