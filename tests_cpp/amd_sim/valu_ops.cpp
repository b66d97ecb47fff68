// What vector ALU instructions make of one lane.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "amd_sim/valu_ops.h"

namespace amd_sim {
namespace {

using Op = ValuOp;
using Fn = decltype(ValuOp::fn);

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

float max_num(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a > b || (a == 0 && b == 0 && !std::signbit(a)) ? a : b;
}
float min_num(float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a < b || (a == 0 && b == 0 && std::signbit(a)) ? a : b;
}
double max_num64(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b);
}
double min_num64(double a, double b) {
  return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b);
}
float med3(float a, float b, float c) {
  if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return min_num(min_num(a, b), c);
  return max_num(min_num(a, b), min_num(max_num(a, b), c));
}
template <class T>
T med(T a, T b, T c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}
i32 to_i32(double d) {
  if (std::isnan(d)) return 0;
  return d >= 2147483647.0 ? INT32_MAX : d <= -2147483648.0 ? INT32_MIN : static_cast<i32>(d);
}
u32 to_u32(double d) {
  if (std::isnan(d) || d <= 0) return 0;
  return d >= 4294967295.0 ? UINT32_MAX : static_cast<u32>(d);
}
i32 s24(u64 v) {
  return static_cast<i32>(static_cast<u32>(v) << 8) >> 8;
}
i32 s16(u64 v) {
  return static_cast<std::int16_t>(v);
}
u32 byte_perm(u64 a, u64 b, u64 sel) {
  const u64 data = a << 32 | (b & 0xFFFFFFFF);
  u32 r = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 s = sel >> (8 * k) & 255;
    u32 v;
    if (s >= 13)
      v = 255;
    else if (s == 12)
      v = 0;
    else if (s >= 8)
      v = (data >> (8 * (2 * (s - 8) + 1) + 7) & 1) * 255;
    else
      v = data >> (8 * s) & 255;
    r |= v << (8 * k);
  }
  return r;
}
int exponent(float f) {
  return static_cast<int>(bits(f) >> 23 & 255);
}
int exponent(double f) {
  return static_cast<int>(bits64(f) >> 52 & 2047);
}
bool denorm(float f) {
  return f != 0 && exponent(f) == 0;
}
bool denorm(double f) {
  return f != 0 && exponent(f) == 0;
}
// v_div_scale: the scaled source, and whether the quotient is to be scaled back (bit 64 of nothing: by `post`).
template <class T>
T div_scale(T s0, T s1, T s2, int near_max, int scale, int tiny, bool& post) {
  post = false;
  if (s2 == 0 || s1 == 0) return std::numeric_limits<T>::quiet_NaN();
  const double inverse = 1.0 / static_cast<double>(s1);
  if (exponent(s2) - exponent(s1) >= near_max) {
    post = true;
    return s0 == s1 ? std::ldexp(s0, scale) : s0;
  }
  if (denorm(s1)) return std::ldexp(s0, scale);
  // For f32 the inverse of a normal number is never a subnormal double.
  if (sizeof(T) == 8 && denorm(inverse) && denorm(static_cast<T>(s2 / s1))) {
    post = true;
    return s0 == s1 ? std::ldexp(s0, scale) : s0;
  }
  if (sizeof(T) == 8 && denorm(inverse)) return std::ldexp(s0, -scale);
  if (denorm(static_cast<T>(s2 / s1))) {
    post = true;
    return s0 == s2 ? std::ldexp(s0, scale) : s0;
  }
  return exponent(s2) <= tiny ? std::ldexp(s0, scale) : s0;
}
template <class T>
T div_fixup(T s0, T s1, T s2) {
  const bool sign = std::signbit(s1) != std::signbit(s2);
  const T inf = std::numeric_limits<T>::infinity();
  const auto with = [sign](T v) { return sign ? -v : v; };
  if (std::isnan(s2)) return s2;
  if (std::isnan(s1)) return s1;
  if ((s1 == 0 && s2 == 0) || (std::isinf(s1) && std::isinf(s2))) return -std::numeric_limits<T>::quiet_NaN();
  if (s1 == 0 || std::isinf(s2)) return with(inf);
  if (std::isinf(s1) || s2 == 0) return with(0);
  if (exponent(s2) - exponent(s1) < (sizeof(T) == 4 ? -150 : -1075)) return with(0);
  return with(std::fabs(s0));
}
// What the sum of a dot product takes: two steps, each rounded.
float dot2(float a0, float b0, float a1, float b1, float c) {
  return std::fma(a1, b1, std::fma(a0, b0, c));
}

#define OP(...)                                                                                               \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 c, [[maybe_unused]] u64 d) -> u64 { \
    return __VA_ARGS__;                                                                                       \
  }
#define U(x) static_cast<u32>(x)
#define I(x) static_cast<i32>(x)
#define FF(expr)                                                                                              \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 c, [[maybe_unused]] u64 d) -> u64 { \
    [[maybe_unused]] const float x = f32(a), y = f32(b), z = f32(c), o = f32(d);                              \
    return bits(static_cast<float>(expr));                                                                    \
  }
#define DD(expr)                                                                                              \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 c, [[maybe_unused]] u64 d) -> u64 { \
    [[maybe_unused]] const double x = f64(a), y = f64(b), z = f64(c);                                         \
    return bits64(expr);                                                                                      \
  }
#define HH(expr)                                                                                              \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 c, [[maybe_unused]] u64 d) -> u64 { \
    [[maybe_unused]] const double x = f16(a), y = f16(b), z = f16(c), o = f16(d);                             \
    return bits16(expr);                                                                                      \
  }

template <class T>
bool compare(int op, T a, T b) {
  switch (op) {
    case 0: return false;
    case 1: return a < b;
    case 2: return a == b;
    case 3: return a <= b;
    case 4: return a > b;
    case 5: return a != b;
    case 6: return a >= b;
    default: return true;
  }
}
// Comparisons by name: the operation and the type of the sources.
const std::pair<const char*, int> kCompares[] = {{"lt", 1}, {"eq", 2}, {"le", 3}, {"gt", 4}, {"ne", 5}, {"ge", 6}};
template <int op>
constexpr Fn kCmp[8] = {
    OP(compare(op, I(a), I(b))),
    OP(compare(op, U(a), U(b))),
    OP(compare(op, static_cast<i64>(a), static_cast<i64>(b))),
    OP(compare(op, a, b)),
    OP(compare(op, s16(a), s16(b))),
    OP(compare(op, U(a & 0xFFFF), U(b & 0xFFFF))),
};
template <int op>  // ordered and unordered: n** is "not **"
bool fcompare(double x, double y) {
  switch (op) {
    case 0: return x < y;
    case 1: return x == y;
    case 2: return x <= y;
    case 3: return x > y;
    case 4: return x < y || x > y;
    case 5: return x >= y;
    case 6: return !std::isnan(x) && !std::isnan(y);
    default: return std::isnan(x) || std::isnan(y);
  }
}
template <int op, bool negate>
constexpr Fn kFcmp[3] = {
    OP(fcompare<op>(f32(a), f32(b)) != negate),
    OP(fcompare<op>(f64(a), f64(b)) != negate),
    OP(fcompare<op>(f16(a), f16(b)) != negate),
};

u64 bfrev_b32_op(u64 a, u64, u64, u64) {
  u32 r = 0;
  for (int k = 0; k < 32; ++k) r |= U(a >> k & 1) << (31 - k);
  return r;
}

u64 cls_i32_op(u64 a, u64, u64, u64) {
  const u32 v = U(a), w = I(v) < 0 ? ~v : v;
  return w == 0 ? ~0u : U(std::countl_zero(w));
}

u64 bfe_u32_op(u64 a, u64 b, u64 c, u64) {
  const u32 n = c & 31;
  return U(a) >> (b & 31) & ((1u << n) - 1);
}

u64 bfe_i32_op(u64 a, u64 b, u64 c, u64) {
  const u32 n = c & 31, v = U(a) >> (b & 31) & ((1u << n) - 1);
  return n == 0 ? 0 : U(I(v << (32 - n)) >> (32 - n));
}

u64 sad_u8_op(u64 a, u64 b, u64 c, u64) {
  u32 s = U(c);
  for (int k = 0; k < 32; k += 8) s += U(std::abs(I(a >> k & 255) - I(b >> k & 255)));
  return s;
}

u64 frexp_exp_i32_f32_op(u64 a, u64, u64, u64) {
  const float x = f32(a);
  int e = 0;
  if (std::isfinite(x)) std::frexp(x, &e);
  return U(e);
}

u64 frexp_mant_f32_op(u64 a, u64, u64, u64) {
  const float x = f32(a);
  int e;
  return std::isfinite(x) ? bits(std::frexp(x, &e)) : a;
}

u64 cvt_pk_u8_f32_op(u64 a, u64 b, u64 c, u64) {
  const u32 k = 8 * (b & 3);
  return (U(c) & ~(255u << k)) | std::min(to_u32(std::nearbyint(f32(a))), 255u) << k;
}

u64 dot4_u32_u8_op(u64 a, u64 b, u64 c, u64) {
  u32 s = U(c);
  for (int k = 0; k < 32; k += 8) s += U(a >> k & 255) * U(b >> k & 255);
  return s;
}

u64 dot8_u32_u4_op(u64 a, u64 b, u64 c, u64) {
  u32 s = U(c);
  for (int k = 0; k < 32; k += 4) s += U(a >> k & 15) * U(b >> k & 15);
  return s;
}

u64 cmp_class_f32_op(u64 a, u64 b, u64, u64) {
  const float x = f32(a);
  const bool n = std::signbit(x);
  int k;
  if (std::isnan(x))
    k = bits(x) >> 22 & 1 ? 1 : 0;
  else if (std::isinf(x))
    k = n ? 2 : 9;
  else if (x == 0)
    k = n ? 5 : 6;
  else if (denorm(x))
    k = n ? 4 : 7;
  else
    k = n ? 3 : 8;
  return b >> k & 1;
}

std::unordered_map<std::string, Op> make_table() {
  std::unordered_map<std::string, Op> t = {
      // moves, bits
      {"v_mov_b32", {"ii", OP(a)}},
      {"v_not_b32", {"ii", OP(U(~a))}},
      {"v_bfrev_b32", {"ii", bfrev_b32_op}},
      {"v_clz_i32_u32", {"ii", OP(U(a) == 0 ? ~0u : U(std::countl_zero(U(a))))}},
      {"v_ctz_i32_b32", {"ii", OP(U(a) == 0 ? ~0u : U(std::countr_zero(U(a))))}},
      {"v_cls_i32", {"ii", cls_i32_op}},
      {"v_and_b32", {"iii", OP(a & b)}},
      {"v_or_b32", {"iii", OP(a | b)}},
      {"v_xor_b32", {"iii", OP(a ^ b)}},
      {"v_xnor_b32", {"iii", OP(U(~(a ^ b)))}},
      {"v_lshlrev_b32", {"iii", OP(U(b << (a & 31)))}},
      {"v_lshrrev_b32", {"iii", OP(U(b) >> (a & 31))}},
      {"v_ashrrev_i32", {"iii", OP(U(I(b) >> (a & 31)))}},
      {"v_lshlrev_b64", {"lil", OP(b << (a & 63))}},
      {"v_lshrrev_b64", {"lil", OP(b >> (a & 63))}},
      {"v_ashrrev_i64", {"lil", OP(static_cast<u64>(static_cast<i64>(b) >> (a & 63)))}},
      {"v_bfe_u32", {"iiii", bfe_u32_op}},
      {"v_bfe_i32", {"iiii", bfe_i32_op}},
      {"v_bfi_b32", {"iiii", OP((a & b) | (~a & c & 0xFFFFFFFF))}},
      {"v_bfm_b32", {"iii", OP(U(((1u << (a & 31)) - 1) << (b & 31)))}},
      {"v_bcnt_u32_b32", {"iii", OP(U(U(std::popcount(U(a))) + b))}},
      {"v_alignbit_b32", {"iiii", OP(U((a << 32 | b) >> (c & 31)))}},
      {"v_alignbyte_b32", {"iiii", OP(U((a << 32 | b) >> (8 * (c & 3))))}},
      {"v_perm_b32", {"iiii", OP(byte_perm(a, b, c))}},
      {"v_and_or_b32", {"iiii", OP((a & b) | c)}},
      {"v_or3_b32", {"iiii", OP(a | b | c)}},
      {"v_xor3_b32", {"iiii", OP(a ^ b ^ c)}},
      {"v_lshl_or_b32", {"iiii", OP(U(a << (b & 31)) | c)}},
      // integers
      {"v_add_nc_u32", {"iii", OP(U(a + b))}},
      {"v_sub_nc_u32", {"iii", OP(U(a - b))}},
      {"v_add_nc_u32 clamp", {"iii", OP(a + b > ~u32{0} ? ~u32{0} : a + b), kValu, false, true}},
      {"v_sub_nc_u32 clamp", {"iii", OP(a > b ? a - b : 0), kValu, false, true}},
      {"v_subrev_nc_u32", {"iii", OP(U(b - a))}},
      {"v_add3_u32", {"iiii", OP(U(a + b + c))}},
      {"v_add_lshl_u32", {"iiii", OP(U((a + b) << (c & 31)))}},
      {"v_lshl_add_u32", {"iiii", OP(U((a << (b & 31)) + c))}},
      {"v_xad_u32", {"iiii", OP(U((a ^ b) + c))}},
      {"v_mul_lo_u32", {"iii", OP(U(a * b)), kTrans}},
      {"v_mul_hi_u32", {"iii", OP(a * b >> 32), kTrans}},
      {"v_mul_hi_i32", {"iii", OP(U(static_cast<u64>(static_cast<i64>(I(a)) * I(b)) >> 32)), kTrans}},
      {"v_mul_u32_u24", {"iii", OP(U((a & 0xFFFFFF) * (b & 0xFFFFFF)))}},
      {"v_mul_i32_i24", {"iii", OP(U(static_cast<i64>(s24(a)) * s24(b)))}},
      {"v_mul_hi_u32_u24", {"iii", OP((a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32)}},
      {"v_mad_u32_u24", {"iiii", OP(U((a & 0xFFFFFF) * (b & 0xFFFFFF) + c))}},
      {"v_mad_i32_i24", {"iiii", OP(U(static_cast<i64>(s24(a)) * s24(b) + I(c)))}},
      {"v_mad_u32_u16", {"issi", OP(U((a & 0xFFFF) * (b & 0xFFFF) + c))}},
      {"v_mad_i32_i16", {"issi", OP(U(static_cast<i64>(s16(a)) * s16(b) + I(c)))}},
      {"v_min_u32", {"iii", OP(std::min(U(a), U(b)))}},
      {"v_max_u32", {"iii", OP(std::max(U(a), U(b)))}},
      {"v_min_i32", {"iii", OP(U(std::min(I(a), I(b))))}},
      {"v_max_i32", {"iii", OP(U(std::max(I(a), I(b))))}},
      {"v_min3_u32", {"iiii", OP(std::min({U(a), U(b), U(c)}))}},
      {"v_max3_u32", {"iiii", OP(std::max({U(a), U(b), U(c)}))}},
      {"v_min3_i32", {"iiii", OP(U(std::min({I(a), I(b), I(c)})))}},
      {"v_max3_i32", {"iiii", OP(U(std::max({I(a), I(b), I(c)})))}},
      {"v_med3_u32", {"iiii", OP(med(U(a), U(b), U(c)))}},
      {"v_med3_i32", {"iiii", OP(U(med(I(a), I(b), I(c))))}},
      {"v_sad_u8", {"iiii", sad_u8_op}},
      // 16 bits
      {"v_add_nc_u16", {"sss", OP(a + b)}},
      {"v_sub_nc_u16", {"sss", OP(a - b)}},
      {"v_add_nc_i16", {"sss", OP(a + b)}},
      {"v_sub_nc_i16", {"sss", OP(a - b)}},
      {"v_mul_lo_u16", {"sss", OP(a * b)}},
      {"v_lshlrev_b16", {"sss", OP(b << (a & 15))}},
      {"v_lshrrev_b16", {"sss", OP((b & 0xFFFF) >> (a & 15))}},
      {"v_ashrrev_i16", {"sss", OP(U(s16(b) >> (a & 15)))}},
      {"v_and_b16", {"sss", OP(a & b)}},
      {"v_or_b16", {"sss", OP(a | b)}},
      {"v_xor_b16", {"sss", OP(a ^ b)}},
      {"v_mov_b16", {"ss", OP(a)}},
      {"v_min_u16", {"sss", OP(std::min(a & 0xFFFF, b & 0xFFFF))}},
      {"v_max_u16", {"sss", OP(std::max(a & 0xFFFF, b & 0xFFFF))}},
      {"v_min_i16", {"sss", OP(U(std::min(s16(a), s16(b))))}},
      {"v_max_i16", {"sss", OP(U(std::max(s16(a), s16(b))))}},
      {"v_mad_u16", {"ssss", OP(a * b + c)}},
      {"v_pack_b32_f16", {"ihh", OP((a & 0xFFFF) | (b & 0xFFFF) << 16)}},
      {"v_cvt_pk_u16_u32", {"iii", OP(std::min<u32>(U(a), 65535) | std::min<u32>(U(b), 65535) << 16)}},
      {"v_cvt_pk_i16_i32", {"iii", OP((U(med(I(a), -32768, 32767)) & 0xFFFF) | U(med(I(b), -32768, 32767)) << 16)}},
      // f32
      {"v_add_f32", {"fff", FF(x + y)}},
      {"v_sub_f32", {"fff", FF(x - y)}},
      {"v_subrev_f32", {"fff", FF(y - x)}},
      {"v_mul_f32", {"fff", FF(x * y)}},
      {"v_mul_dx9_zero_f32", {"fff", FF(x == 0 || y == 0 ? 0.0f : x * y)}},
      {"v_fma_f32", {"ffff", FF(std::fma(x, y, z))}},
      {"v_fmac_f32", {"fff", FF(std::fma(x, y, o))}},
      {"v_fmaak_f32", {"ffff", FF(std::fma(x, y, z))}},
      {"v_fmamk_f32", {"ffff", FF(std::fma(x, y, z))}},
      {"v_max_num_f32", {"fff", FF(max_num(x, y))}},
      {"v_min_num_f32", {"fff", FF(min_num(x, y))}},
      {"v_maximum_f32", {"fff", FF(std::isnan(x) || std::isnan(y) ? NAN : max_num(x, y))}},
      {"v_minimum_f32", {"fff", FF(std::isnan(x) || std::isnan(y) ? NAN : min_num(x, y))}},
      {"v_max3_num_f32", {"ffff", FF(max_num(max_num(x, y), z))}},
      {"v_min3_num_f32", {"ffff", FF(min_num(min_num(x, y), z))}},
      {"v_maxmin_num_f32", {"ffff", FF(min_num(max_num(x, y), z))}},
      {"v_minmax_num_f32", {"ffff", FF(max_num(min_num(x, y), z))}},
      {"v_med3_num_f32", {"ffff", FF(med3(x, y, z))}},
      {"v_floor_f32", {"ff", FF(std::floor(x))}},
      {"v_ceil_f32", {"ff", FF(std::ceil(x))}},
      {"v_trunc_f32", {"ff", FF(std::trunc(x))}},
      {"v_rndne_f32", {"ff", FF(std::nearbyint(x))}},
      {"v_fract_f32", {"ff", FF(std::min(x - std::floor(x), 0x1.fffffep-1f))}},
      {"v_ldexp_f32", {"ffi", OP(bits(std::ldexp(f32(a), std::clamp(I(b), -400, 400))))}},
      {"v_frexp_exp_i32_f32", {"if", frexp_exp_i32_f32_op}},
      {"v_frexp_mant_f32", {"ff", frexp_mant_f32_op}},
      {"v_exp_f32", {"ff", FF(std::exp2(static_cast<double>(x))), kTrans, true}},
      {"v_log_f32", {"ff", FF(std::log2(static_cast<double>(x))), kTrans, true}},
      {"v_rcp_f32", {"ff", FF(1.0 / static_cast<double>(x)), kTrans, true}},
      {"v_rcp_iflag_f32", {"ff", FF(1.0 / static_cast<double>(x)), kTrans, true}},
      {"v_rsq_f32", {"ff", FF(1.0 / std::sqrt(static_cast<double>(x))), kTrans, true}},
      {"v_sqrt_f32", {"ff", FF(std::sqrt(static_cast<double>(x))), kTrans, true}},
      {"v_sin_f32", {"ff", FF(std::sin(2 * M_PI * static_cast<double>(x))), kTrans, true}},
      {"v_cos_f32", {"ff", FF(std::cos(2 * M_PI * static_cast<double>(x))), kTrans, true}},
      {"v_div_fixup_f32", {"ffff", FF(div_fixup(x, y, z))}},
      {"v_cvt_f32_i32", {"fi", OP(bits(static_cast<float>(I(a))))}},
      {"v_cvt_f32_u32", {"fi", OP(bits(static_cast<float>(U(a))))}},
      {"v_cvt_i32_f32", {"if", OP(U(to_i32(f32(a))))}},
      {"v_cvt_u32_f32", {"if", OP(to_u32(f32(a)))}},
      {"v_cvt_nearest_i32_f32", {"if", OP(U(to_i32(std::floor(f32(a) + 0.5))))}},
      {"v_cvt_floor_i32_f32", {"if", OP(U(to_i32(std::floor(f32(a)))))}},
      {"v_cvt_f32_ubyte0", {"fi", OP(bits(static_cast<float>(a & 255)))}},
      {"v_cvt_f32_ubyte1", {"fi", OP(bits(static_cast<float>(a >> 8 & 255)))}},
      {"v_cvt_f32_ubyte2", {"fi", OP(bits(static_cast<float>(a >> 16 & 255)))}},
      {"v_cvt_f32_ubyte3", {"fi", OP(bits(static_cast<float>(a >> 24 & 255)))}},
      {"v_cvt_f32_f16", {"fh", OP(bits(f16(a)))}},
      {"v_cvt_f16_f32", {"hf", OP(bits16(f32(a)))}},
      {"v_cvt_pk_rtz_f16_f32", {"iff", OP(bits16(f32(a), true) | bits16(f32(b), true) << 16)}},
      {"v_cvt_pk_u8_f32", {"ifii", cvt_pk_u8_f32_op}},
      {"v_cvt_f32_f64", {"fd", OP(bits(static_cast<float>(f64(a))))}},
      {"v_cvt_f64_f32", {"df", OP(bits64(f32(a)))}},
      {"v_cvt_f64_i32", {"di", OP(bits64(I(a)))}},
      {"v_cvt_f64_u32", {"di", OP(bits64(U(a)))}},
      {"v_cvt_i32_f64", {"id", OP(U(to_i32(f64(a))))}},
      {"v_cvt_u32_f64", {"id", OP(to_u32(f64(a)))}},
      // f16
      {"v_add_f16", {"hhh", HH(x + y)}},
      {"v_sub_f16", {"hhh", HH(x - y)}},
      {"v_mul_f16", {"hhh", HH(x * y)}},
      {"v_fma_f16", {"hhhh", HH(std::fma(x, y, z))}},
      {"v_fmac_f16", {"hhh", HH(std::fma(x, y, o))}},
      {"v_max_num_f16", {"hhh", HH(max_num(static_cast<float>(x), static_cast<float>(y)))}},
      {"v_min_num_f16", {"hhh", HH(min_num(static_cast<float>(x), static_cast<float>(y)))}},
      {"v_cvt_f16_u16", {"hs", OP(bits16(static_cast<double>(a & 0xFFFF)))}},
      {"v_cvt_f16_i16", {"hs", OP(bits16(s16(a)))}},
      {"v_cvt_u16_f16", {"sh", OP(std::min(to_u32(f16(a)), 65535u))}},
      {"v_cvt_i16_f16", {"sh", OP(U(med(to_i32(f16(a)), -32768, 32767)))}},
      {"v_rcp_f16", {"hh", HH(1.0 / x), kTrans, true}},
      {"v_exp_f16", {"hh", HH(std::exp2(x)), kTrans, true}},
      {"v_sqrt_f16", {"hh", HH(std::sqrt(x)), kTrans, true}},
      // f64
      {"v_add_f64", {"ddd", DD(x + y)}},
      {"v_mul_f64", {"ddd", DD(x * y)}},
      {"v_fma_f64", {"dddd", DD(std::fma(x, y, z))}},
      {"v_max_num_f64", {"ddd", DD(max_num64(x, y))}},
      {"v_min_num_f64", {"ddd", DD(min_num64(x, y))}},
      {"v_rcp_f64", {"dd", DD(1.0 / x), kTrans, true}},
      {"v_rsq_f64", {"dd", DD(1.0 / std::sqrt(x)), kTrans, true}},
      {"v_sqrt_f64", {"dd", DD(std::sqrt(x)), kTrans, true}},
      {"v_ldexp_f64", {"ddi", OP(bits64(std::ldexp(f64(a), std::clamp(I(b), -4000, 4000))))}},
      {"v_floor_f64", {"dd", DD(std::floor(x))}},
      {"v_trunc_f64", {"dd", DD(std::trunc(x))}},
      {"v_rndne_f64", {"dd", DD(std::nearbyint(x))}},
      {"v_div_fixup_f64", {"dddd", DD(div_fixup(x, y, z))}},
      // dots of pairs
      {"v_dot2_f32_f16", {"fiif", OP(bits(dot2(f16(a), f16(b), f16(a >> 16), f16(b >> 16), f32(c))))}},
      {"v_dot2_f32_bf16", {"fiif", OP(bits(dot2(bf16(a), bf16(b), bf16(a >> 16), bf16(b >> 16), f32(c))))}},
      {"v_dot2acc_f32_f16", {"fii", OP(bits(dot2(f16(a), f16(b), f16(a >> 16), f16(b >> 16), f32(d))))}},
      {"v_dot4_u32_u8", {"iiii", dot4_u32_u8_op}},
      {"v_dot8_u32_u4", {"iiii", dot8_u32_u4_op}},
  };
  // As gfx11 and LLVM name what gfx12 calls *_num.
  for (const char* w : {"f32", "f16", "f64"})
    for (const char* k : {"max", "min", "max3", "min3", "med3", "maxmin", "minmax"})
      if (const auto it = t.find(std::string("v_") + k + "_num_" + w); it != t.end())
        t.emplace(std::string("v_") + k + "_" + w, it->second);
  const char* int_types[] = {"i32", "u32", "i64", "u64", "i16", "u16"};
  const char* int_sources[] = {"oii", "oii", "oll", "oll", "oss", "oss"};
  for (const auto& [name, op] : kCompares)
    for (int k = 0; k < 6; ++k) {
      const Fn fn = op == 1   ? kCmp<1>[k]
                    : op == 2 ? kCmp<2>[k]
                    : op == 3 ? kCmp<3>[k]
                    : op == 4 ? kCmp<4>[k]
                    : op == 5 ? kCmp<5>[k]
                              : kCmp<6>[k];
      t[std::string("v_cmp_") + name + "_" + int_types[k]] = {int_sources[k], fn};
    }
  const char* float_types[] = {"f32", "f64", "f16"};
  const char* float_sources[] = {"off", "odd", "ohh"};
  for (int k = 0; k < 3; ++k) {
    const auto put = [&](const char* yes, const char* no, Fn f, Fn g) {
      t[std::string("v_cmp_") + yes + "_" + float_types[k]] = {float_sources[k], f};
      t[std::string("v_cmp_") + no + "_" + float_types[k]] = {float_sources[k], g};
    };
    put("lt", "nlt", kFcmp<0, false>[k], kFcmp<0, true>[k]);
    put("eq", "neq", kFcmp<1, false>[k], kFcmp<1, true>[k]);
    put("le", "nle", kFcmp<2, false>[k], kFcmp<2, true>[k]);
    put("gt", "ngt", kFcmp<3, false>[k], kFcmp<3, true>[k]);
    put("lg", "nlg", kFcmp<4, false>[k], kFcmp<4, true>[k]);
    put("ge", "nge", kFcmp<5, false>[k], kFcmp<5, true>[k]);
    put("o", "u", kFcmp<6, false>[k], kFcmp<7, false>[k]);
  }
  t["v_cmp_class_f32"] = {"ofi", cmp_class_f32_op};
  return t;
}
}  // namespace

const ValuOp* find_valu_op(const std::string& name) {
  static const auto table = make_table();
  const auto it = table.find(name);
  return it == table.end() ? nullptr : &it->second;
}

// Called by lanes.cpp for v_div_scale.
float div_scale32(float a, float b, float c, bool& post) {
  return div_scale<float>(a, b, c, 96, 64, 23, post);
}
double div_scale64(double a, double b, double c, bool& post) {
  return div_scale<double>(a, b, c, 768, 128, 53, post);
}

}  // namespace amd_sim
