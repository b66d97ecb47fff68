// Instructions against closed forms: each row is an instruction and what it makes of its sources.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "amd_sim/bench.h"

namespace amd_sim {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

constexpr int kSeeds = 40;

i32 s(u32 v) {
  return static_cast<i32>(v);
}
i32 s24(u32 v) {
  return s(v << 8) >> 8;
}
i32 s16(u32 v) {
  return static_cast<std::int16_t>(v);
}
i32 s8(u32 v, int k) {
  return static_cast<std::int8_t>(v >> (8 * k));
}
u32 u8(u32 v, int k) {
  return v >> (8 * k) & 255;
}
u32 wide(i64 v) {
  return static_cast<u32>(v);
}
u32 field(u32 v, u32 at, u32 n) {  // n bits from `at` on
  return n == 0 ? 0 : (v >> at) & (n >= 32 ? ~0u : (1u << n) - 1);
}

// v0 of a lane from v1, v2, v3 and what it was.
struct IntRow {
  const char* text;
  u32 (*wanted)(u32 a, u32 b, u32 c, u32 old);
};
#define ROW(text, expr)                                                                               \
  {text, [](u32 a, [[maybe_unused]] u32 b, [[maybe_unused]] u32 c, [[maybe_unused]] u32 old) -> u32 { \
     return static_cast<u32>(expr);                                                                   \
   }}
const IntRow kIntRows[] = {
    ROW("v_mov_b32_e32 v0, v1", a),
    ROW("v_not_b32_e32 v0, v1", ~a),
    ROW("v_bfrev_b32_e32 v0, v1",
        [](u32 v) {
          u32 r = 0;
          for (int k = 0; k < 32; ++k) r = r << 1 | (v >> k & 1);
          return r;
        }(a)),
    ROW("v_clz_i32_u32_e32 v0, v1", a == 0 ? -1 : __builtin_clz(a)),
    ROW("v_ctz_i32_b32_e32 v0, v1", a == 0 ? -1 : __builtin_ctz(a)),
    ROW("v_and_b32_e32 v0, v1, v2", a& b),
    ROW("v_or_b32_e32 v0, v1, v2", a | b),
    ROW("v_xor_b32_e32 v0, v1, v2", a ^ b),
    ROW("v_xnor_b32_e32 v0, v1, v2", ~(a ^ b)),
    ROW("v_lshlrev_b32_e32 v0, v1, v2", b << (a % 32)),
    ROW("v_lshrrev_b32_e32 v0, v1, v2", b >> (a % 32)),
    ROW("v_ashrrev_i32_e32 v0, v1, v2", s(b) >> (a % 32)),
    ROW("v_bfe_u32 v0, v1, v2, v3", field(a, b % 32, c % 32)),
    ROW("v_bfe_i32 v0, v1, v2, v3", c % 32 == 0 ? 0 : s(field(a, b % 32, c % 32) << (32 - c % 32)) >> (32 - c % 32)),
    ROW("v_bfi_b32 v0, v1, v2, v3", (a & b) | (~a & c)),
    ROW("v_bcnt_u32_b32 v0, v1, v2", std::popcount(a) + b),
    ROW("v_alignbit_b32 v0, v1, v2, v3", (u64{a} << 32 | b) >> (c % 32)),
    ROW("v_alignbyte_b32 v0, v1, v2, v3", (u64{a} << 32 | b) >> (8 * (c % 4))),
    ROW("v_and_or_b32 v0, v1, v2, v3", (a & b) | c),
    ROW("v_or3_b32 v0, v1, v2, v3", a | b | c),
    ROW("v_xor3_b32 v0, v1, v2, v3", a ^ b ^ c),
    ROW("v_lshl_or_b32 v0, v1, v2, v3", (a << (b % 32)) | c),
    ROW("v_lshl_add_u32 v0, v1, v2, v3", (a << (b % 32)) + c),
    ROW("v_add_lshl_u32 v0, v1, v2, v3", (a + b) << (c % 32)),
    ROW("v_xad_u32 v0, v1, v2, v3", (a ^ b) + c),
    ROW("v_add_nc_u32_e32 v0, v1, v2", a + b),
    ROW("v_sub_nc_u32_e32 v0, v1, v2", a - b),
    ROW("v_add_nc_u32_e64 v0, v1, v2 clamp", std::min<u64>(u64{a} + b, 0xFFFFFFFF)),
    ROW("v_sub_nc_u32_e64 v0, v1, v2 clamp", a > b ? a - b : 0),
    ROW("v_subrev_nc_u32_e32 v0, v1, v2", b - a),
    ROW("v_add3_u32 v0, v1, v2, v3", a + b + c),
    ROW("v_mul_lo_u32 v0, v1, v2", a* b),
    ROW("v_mul_hi_u32 v0, v1, v2", u64{a} * b >> 32),
    ROW("v_mul_hi_i32 v0, v1, v2", i64{s(a)} * s(b) >> 32),
    ROW("v_mul_u32_u24_e32 v0, v1, v2", u64{a & 0xFFFFFF} * (b & 0xFFFFFF)),
    ROW("v_mul_i32_i24_e32 v0, v1, v2", wide(i64{s24(a)} * s24(b))),
    ROW("v_mad_u32_u24 v0, v1, v2, v3", u64{a & 0xFFFFFF} * (b & 0xFFFFFF) + c),
    ROW("v_mad_i32_i24 v0, v1, v2, v3", wide(i64{s24(a)} * s24(b) + s(c))),
    ROW("v_mad_u32_u16 v0, v1, v2, v3", (a & 0xFFFF) * (b & 0xFFFF) + c),
    ROW("v_mad_i32_i16 v0, v1, v2, v3", s16(a) * s16(b) + i64{s(c)}),
    ROW("v_min_u32_e32 v0, v1, v2", std::min(a, b)),
    ROW("v_max_u32_e32 v0, v1, v2", std::max(a, b)),
    ROW("v_min_i32_e32 v0, v1, v2", std::min(s(a), s(b))),
    ROW("v_max_i32_e32 v0, v1, v2", std::max(s(a), s(b))),
    ROW("v_min3_i32 v0, v1, v2, v3", std::min({s(a), s(b), s(c)})),
    ROW("v_max3_u32 v0, v1, v2, v3", std::max({a, b, c})),
    ROW("v_med3_i32 v0, v1, v2, v3",
        s(a) + i64{s(b)} + s(c) - std::min({s(a), s(b), s(c)}) - i64{std::max({s(a), s(b), s(c)})}),
    ROW("v_sad_u8 v0, v1, v2, v3",
        c + u32(std::abs(i32(u8(a, 0)) - i32(u8(b, 0)))) + u32(std::abs(i32(u8(a, 1)) - i32(u8(b, 1)))) +
            u32(std::abs(i32(u8(a, 2)) - i32(u8(b, 2)))) + u32(std::abs(i32(u8(a, 3)) - i32(u8(b, 3))))),
    ROW("v_perm_b32 v0, v1, v2, 0x6040200", u8(b, 0) | u8(b, 2) << 8 | u8(a, 0) << 16 | u8(a, 2) << 24),
    ROW("v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[1,1,0]",
        s(c) + i64{s8(a, 0)} * s8(b, 0) + s8(a, 1) * s8(b, 1) + s8(a, 2) * s8(b, 2) + s8(a, 3) * s8(b, 3)),
    ROW("v_dot4_i32_iu8 v0, v1, v2, v3 neg_lo:[0,1,0]", s(c) + i64{u8(a, 0)} * s8(b, 0) + i64{u8(a, 1)} * s8(b, 1) +
                                                            i64{u8(a, 2)} * s8(b, 2) + i64{u8(a, 3)} * s8(b, 3)),
    ROW("v_dot4_u32_u8 v0, v1, v2, v3",
        c + u8(a, 0) * u8(b, 0) + u8(a, 1) * u8(b, 1) + u8(a, 2) * u8(b, 2) + u8(a, 3) * u8(b, 3)),
    ROW("v_add_nc_u16 v0, v1, v2", (old & 0xFFFF0000) | ((a + b) & 0xFFFF)),
    ROW("v_lshlrev_b16 v0, v1, v2", (old & 0xFFFF0000) | ((b << (a % 16)) & 0xFFFF)),
    ROW("v_pk_add_u16 v0, v1, v2", ((a + b) & 0xFFFF) | ((a >> 16) + (b >> 16)) << 16),
    ROW("v_pk_mul_lo_u16 v0, v1, v2", ((a * b) & 0xFFFF) | ((a >> 16) * (b >> 16)) << 16),
    ROW("v_pk_max_i16 v0, v1, v2", (u32(std::max(s16(a), s16(b))) & 0xFFFF) | u32(std::max(s16(a >> 16), s16(b >> 16)))
                                                                                  << 16),
    ROW("v_cvt_f32_ubyte2_e32 v0, v1", bits(static_cast<float>(u8(a, 2)))),
    ROW("v_cvt_f32_i32_e32 v0, v1", bits(static_cast<float>(s(a)))),
    ROW("v_cvt_f32_u32_e32 v0, v1", bits(static_cast<float>(a))),
};
#undef ROW

TEST(AmdSimOps, OfIntegers) {
  for (const IntRow& row : kIntRows) {
    SCOPED_TRACE(row.text);
    for (u32 seed = 0; seed < kSeeds; ++seed) {
      Bench bench;
      for (int reg = 0; reg < 4; ++reg) bench.fill(reg, 4 * seed + static_cast<u32>(reg));
      const auto before = bench.wave.v;
      bench.run(row.text);
      for (int lane = 0; lane < kLanes; ++lane)
        ASSERT_EQ(bench.wave.v[0][lane], row.wanted(before[1][lane], before[2][lane], before[3][lane], before[0][lane]))
            << std::hex << before[1][lane] << " " << before[2][lane] << " " << before[3][lane];
    }
  }
}

struct FloatRow {
  const char* text;
  float (*wanted)(float a, float b, float c);
};
#define ROW(text, expr) \
  {text, [](float a, [[maybe_unused]] float b, [[maybe_unused]] float c) -> float { return expr; }}
const FloatRow kFloatRows[] = {
    ROW("v_add_f32_e32 v0, v1, v2", a + b),
    ROW("v_sub_f32_e32 v0, v1, v2", a - b),
    ROW("v_subrev_f32_e32 v0, v1, v2", b - a),
    ROW("v_mul_f32_e32 v0, v1, v2", a* b),
    ROW("v_mul_f32_e64 v0, -v1, |v2|", -a* std::fabs(b)),
    ROW("v_fma_f32 v0, v1, v2, v3", static_cast<float>(std::fma(double{a}, double{b}, 0.0) + c)),
    ROW("v_fma_f32 v0, -v1, v2, -v3", static_cast<float>(-(double{a} * b) - c)),
    ROW("v_max_num_f32_e32 v0, v1, v2", a > b ? a : b),
    ROW("v_min_num_f32_e32 v0, v1, v2", a < b ? a : b),
    ROW("v_max3_num_f32 v0, v1, v2, v3", std::max({a, b, c})),
    ROW("v_med3_num_f32 v0, v1, v2, v3", std::max(std::min(a, b), std::min(std::max(a, b), c))),
    ROW("v_floor_f32_e32 v0, v1", std::floor(a)),
    ROW("v_ceil_f32_e32 v0, v1", std::ceil(a)),
    ROW("v_trunc_f32_e32 v0, v1", std::trunc(a)),
    ROW("v_rndne_f32_e32 v0, v1", std::nearbyint(a)),
    ROW("v_add_f32_e64 v0, v1, v2 mul:2", (a + b) * 2),
    ROW("v_add_f32_e64 v0, v1, v2 clamp", std::clamp(a + b, 0.0f, 1.0f)),
    ROW("v_rcp_f32_e32 v0, v1", static_cast<float>(1.0 / double{a})),
};
#undef ROW

TEST(AmdSimOps, OfFloats) {
  for (const FloatRow& row : kFloatRows) {
    SCOPED_TRACE(row.text);
    for (u32 seed = 0; seed < kSeeds; ++seed) {
      Bench bench;
      for (int reg = 1; reg < 4; ++reg) bench.fill_floats(reg, 4 * seed + static_cast<u32>(reg));
      const auto before = bench.wave.v;
      bench.run(row.text);
      for (int lane = 0; lane < kLanes; ++lane)
        ASSERT_EQ(f32(bench.wave.v[0][lane]),
                  row.wanted(f32(before[1][lane]), f32(before[2][lane]), f32(before[3][lane])));
    }
  }
}

TEST(AmdSimOps, FmaRoundsOnce) {
  Bench bench;
  const float a = 1.0f + 0x1p-12f;
  bench.wave.v[1].fill(static_cast<u32>(bits(a)));
  bench.wave.v[2].fill(static_cast<u32>(bits(-(1.0f + 0x1p-11f))));
  bench.run("v_fma_f32 v0, v1, v1, v2");
  EXPECT_EQ(f32(bench.wave.v[0][0]), 0x1p-24f);
  bench.run("v_mul_f32_e32 v0, v1, v1");
  bench.run("v_add_f32_e32 v0, v0, v2");
  EXPECT_EQ(f32(bench.wave.v[0][0]), 0.0f);
}

TEST(AmdSimOps, HalvesHaveTheBitsOfEveryHalf) {
  for (u32 half = 0; half < 0x10000; half += kLanes) {
    Bench bench;
    for (int lane = 0; lane < kLanes; ++lane) bench.wave.v[1][lane] = half + static_cast<u32>(lane);
    bench.run("v_cvt_f32_f16_e32 v2, v1");
    bench.run("v_cvt_f16_f32_e32 v3, v2");
    for (int lane = 0; lane < kLanes; ++lane) {
      const u32 h = half + static_cast<u32>(lane);
      if ((h & 0x7FFF) > 0x7C00) continue;  // not a number
      ASSERT_EQ(bench.wave.v[3][lane] & 0xFFFF, h);
    }
  }
}

TEST(AmdSimOps, ComparisonsWriteAMask) {
  const std::pair<const char*, bool (*)(i32, i32)> rows[] = {
      {"lt", [](i32 a, i32 b) { return a < b; }},  {"le", [](i32 a, i32 b) { return a <= b; }},
      {"gt", [](i32 a, i32 b) { return a > b; }},  {"ge", [](i32 a, i32 b) { return a >= b; }},
      {"eq", [](i32 a, i32 b) { return a == b; }}, {"ne", [](i32 a, i32 b) { return a != b; }}};
  for (const auto& [name, wanted] : rows) {
    Bench bench;
    bench.fill(1, 1), bench.fill(2, 2);
    bench.wave.s[kExec] = 0x0FFFFFFF;
    bench.run(std::string("v_cmp_") + name + "_i32_e64 s4, v1, v2");
    for (int lane = 0; lane < kLanes; ++lane)
      EXPECT_EQ(bench.wave.s[4] >> lane & 1,
                lane < 28 && wanted(s(bench.wave.v[1][lane]), s(bench.wave.v[2][lane])) ? 1u : 0u)
          << name;
  }
}

TEST(AmdSimOps, CarriesAndWideProducts) {
  for (u32 seed = 0; seed < kSeeds; ++seed) {
    Bench bench;
    for (int reg = 1; reg < 5; ++reg) bench.fill(reg, 8 * seed + static_cast<u32>(reg));
    bench.run("v_add_co_u32 v6, vcc_lo, v1, v3");
    bench.run("v_add_co_ci_u32_e64 v7, vcc_lo, v2, v4, vcc_lo");
    bench.run("v_mad_co_u64_u32 v[8:9], s6, v1, v2, v[3:4]");
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto at = [&](int reg) { return u64{bench.wave.v[reg][lane]}; };
      EXPECT_EQ(at(6) | at(7) << 32, (at(1) | at(2) << 32) + (at(3) | at(4) << 32));
      EXPECT_EQ(at(8) | at(9) << 32, at(1) * at(2) + (at(3) | at(4) << 32));
    }
  }
}

// Which lane each lane reads; -1: none, and zero comes.
TEST(AmdSimOps, BetweenLanes) {
  const std::pair<const char*, int (*)(int)> rows[] = {
      {"v_mov_b32_dpp v0, v1 row_shr:3 row_mask:0xf bank_mask:0xf bound_ctrl:1",
       [](int l) { return l % 16 >= 3 ? l - 3 : -1; }},
      {"v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
       [](int l) { return l % 16 < 15 ? l + 1 : -1; }},
      {"v_mov_b32_dpp v0, v1 row_ror:4 row_mask:0xf bank_mask:0xf", [](int l) { return l / 16 * 16 + (l + 12) % 16; }},
      {"v_mov_b32_dpp v0, v1 row_mirror row_mask:0xf bank_mask:0xf", [](int l) { return l / 16 * 16 + 15 - l % 16; }},
      {"v_mov_b32_dpp v0, v1 row_share:5 row_mask:0xf bank_mask:0xf", [](int l) { return l / 16 * 16 + 5; }},
      {"v_mov_b32_dpp v0, v1 row_xmask:6 row_mask:0xf bank_mask:0xf", [](int l) { return l ^ 6; }},
      {"v_mov_b32_dpp v0, v1 quad_perm:[3,0,2,1] row_mask:0xf bank_mask:0xf",
       [](int l) { return l / 4 * 4 + "\3\0\2\1"[l % 4]; }},
      {"v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]", [](int l) { return l / 8 * 8 + 7 - l % 8; }},
      {"v_permlanex16_b32 v0, v1, s0, s1", [](int l) { return l ^ 16; }},
      {"ds_bpermute_b32 v0, v2, v1", [](int l) { return (l * 7 + 3) % 32; }},
  };
  for (const auto& [text, from] : rows) {
    Bench bench;
    bench.fill(1, 9);
    bench.wave.s[0] = 0x76543210, bench.wave.s[1] = 0xFEDCBA98;
    for (int lane = 0; lane < kLanes; ++lane) bench.wave.v[2][lane] = static_cast<u32>((lane * 7 + 3) % 32 * 4);
    bench.run(text);
    for (int lane = 0; lane < kLanes; ++lane)
      EXPECT_EQ(bench.wave.v[0][lane], from(lane) < 0 ? 0 : bench.wave.v[1][from(lane)]) << text << " lane " << lane;
  }
}

TEST(AmdSimOps, ReadLanes) {
  Bench bench;
  bench.fill(1, 5);
  bench.run("v_readlane_b32 s3, v1, 17");
  EXPECT_EQ(bench.wave.s[3], bench.wave.v[1][17]);
  bench.wave.s[kExec] = 0xFFFFFF00;
  bench.run("v_readfirstlane_b32 s3, v1");
  EXPECT_EQ(bench.wave.s[3], bench.wave.v[1][8]);
  bench.run("v_mbcnt_lo_u32_b32 v4, -1, 0");
  for (int lane = 8; lane < kLanes; ++lane) EXPECT_EQ(bench.wave.v[4][lane], static_cast<u32>(lane));
  EXPECT_EQ(bench.wave.v[4][0], 0u);  // switched off
}

// D = A B + C of 16 x 16 tiles of signed bytes; on gfx12 a lane has a row of A, a column of B, eight rows of D.
TEST(AmdSimOps, MatricesOfBytes) {
  Bench bench;
  for (int reg = 0; reg < 20; ++reg) bench.fill(reg, 100 + static_cast<u32>(reg));
  const auto v = bench.wave.v;
  bench.run("v_wmma_i32_16x16x16_iu8 v[8:15], v[0:1], v[2:3], v[8:15] neg_lo:[1,1,0]");
  const auto value = [&](int reg, int index, int k) {  // k of 16: eight in each half of the lanes
    const int lane = index + k / 8 * 16;
    return s8(v[reg + k % 8 / 4][lane], k % 4);
  };
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      const int lane = column + row / 8 * 16;
      i64 sum = s(v[8 + row % 8][lane]);
      for (int k = 0; k < 16; ++k) sum += value(0, row, k) * value(2, column, k);
      ASSERT_EQ(bench.wave.v[8 + row % 8][lane], static_cast<u32>(sum)) << row << ", " << column;
    }
}

// s4 and SCC from s1 and s2.
struct ScalarRow {
  const char* text;
  u32 (*wanted)(u32 a, u32 b);
  u32 (*scc)(u32 a, u32 b);
};
#define ROW(text, expr, flag)                                                         \
  {text, [](u32 a, [[maybe_unused]] u32 b) -> u32 { return static_cast<u32>(expr); }, \
   []([[maybe_unused]] u32 a, [[maybe_unused]] u32 b) -> u32 { return (flag) ? 1u : 0u; }}
const ScalarRow kScalarRows[] = {
    ROW("s_and_b32 s4, s1, s2", a& b, (a & b) != 0),
    ROW("s_or_b32 s4, s1, s2", a | b, (a | b) != 0),
    ROW("s_xor_b32 s4, s1, s2", a ^ b, (a ^ b) != 0),
    ROW("s_and_not1_b32 s4, s1, s2", a & ~b, (a & ~b) != 0),
    ROW("s_lshl_b32 s4, s1, s2", a << (b % 32), a << (b % 32) != 0),
    ROW("s_lshr_b32 s4, s1, s2", a >> (b % 32), a >> (b % 32) != 0),
    ROW("s_ashr_i32 s4, s1, s2", s(a) >> (b % 32), s(a) >> (b % 32) != 0),
    ROW("s_add_co_u32 s4, s1, s2", a + b, u64{a} + b > ~0u),
    ROW("s_sub_co_u32 s4, s1, s2", a - b, a < b),
    ROW("s_add_co_i32 s4, s1, s2", a + b, i64{s(a)} + s(b) != s(a + b)),
    ROW("s_mul_i32 s4, s1, s2", a* b, true),
    ROW("s_mul_hi_u32 s4, s1, s2", u64{a} * b >> 32, true),
    ROW("s_min_u32 s4, s1, s2", std::min(a, b), a < b),
    ROW("s_max_i32 s4, s1, s2", std::max(s(a), s(b)), s(a) >= s(b)),
    ROW("s_lshl2_add_u32 s4, s1, s2", a * 4 + b, u64{a} * 4 + b > ~0u),
    ROW("s_bfe_u32 s4, s1, 0x80004", a >> 4 & 255, (a >> 4 & 255) != 0),
    ROW("s_bfe_i32 s4, s1, 0x80004", static_cast<std::int8_t>(a >> 4), (a >> 4 & 255) != 0),
    ROW("s_cselect_b32 s4, s1, s2", a, true),
    ROW("s_abs_i32 s4, s1", s(a) < 0 ? 0 - a : a, a != 0),
    ROW("s_sext_i32_i8 s4, s1", static_cast<std::int8_t>(a), true),
    ROW("s_pack_ll_b32_b16 s4, s1, s2", (a & 0xFFFF) | b << 16, true),
};
#undef ROW

TEST(AmdSimOps, OfScalars) {
  for (const ScalarRow& row : kScalarRows) {
    SCOPED_TRACE(row.text);
    Bench bench;
    bench.fill(1, 3), bench.fill(2, 4);
    for (int lane = 0; lane < kLanes; ++lane) {
      const u32 a = bench.wave.v[1][lane], b = bench.wave.v[2][lane];
      bench.wave.s[1] = a, bench.wave.s[2] = b, bench.wave.scc = 1;
      bench.run(row.text);
      ASSERT_EQ(bench.wave.s[4], row.wanted(a, b)) << a << " " << b;
      ASSERT_EQ(bench.wave.scc, row.scc(a, b)) << a << " " << b;
    }
  }
}

TEST(AmdSimOps, ScalarFma) {
  Bench bench;
  bench.wave.s[1] = static_cast<u32>(bits(3.0f)), bench.wave.s[2] = static_cast<u32>(bits(-5.0f));
  bench.run("s_fmaak_f32 s4, s1, s2, 0x3f000000");
  EXPECT_EQ(f32(bench.wave.s[4]), -14.5f);
  bench.run("s_fmamk_f32 s4, s1, 0x3f000000, s2");
  EXPECT_EQ(f32(bench.wave.s[4]), -3.5f);
}

TEST(AmdSimOps, ShortComparisonsOfGfx11) {
  Bench bench("gfx1100");
  const auto scc = [&](const char* text, u32 a) {
    bench.wave.s[1] = a;
    bench.run(text);
    return bench.wave.scc;
  };
  EXPECT_EQ(scc("s_cmpk_lt_u32 s1, 0x100", 255), 1u);
  EXPECT_EQ(scc("s_cmpk_lt_u32 s1, 0x100", 256), 0u);
  EXPECT_EQ(scc("s_cmpk_lt_i32 s1, 0xffff", static_cast<u32>(-2)), 1u);  // -1
  EXPECT_EQ(scc("s_cmpk_gt_i32 s1, 0xffff", 0), 1u);
}

TEST(AmdSimOps, ScalarFloatsOfGfx1151) {
  Bench bench("gfx1151");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto result = [&](const char* text, float a, float b) {
    bench.wave.s[1] = static_cast<u32>(bits(a)), bench.wave.s[2] = static_cast<u32>(bits(b));
    bench.run(text);
    return f32(bench.wave.s[4]);
  };
  EXPECT_EQ(result("s_max_f32 s4, s1, s2", -3.0f, 2.5f), 2.5f);
  EXPECT_EQ(result("s_max_f32 s4, s1, s2", nan, 2.5f), 2.5f);
  EXPECT_EQ(result("s_min_f32 s4, s1, s2", -3.0f, 2.5f), -3.0f);
  EXPECT_EQ(result("s_min_f32 s4, s1, s2", -3.0f, nan), -3.0f);
  EXPECT_EQ(result("s_mul_f32 s4, s1, s2", -3.0f, 2.5f), -7.5f);
}

TEST(AmdSimOps, WhatIsNotKnownIsRefused) {
  Bench bench;
  for (const char* text : {"v_add_f128 v0, v1, v2", "s_dance s0, s1", "global_load_tr_b64 v[0:1], v2, s[0:1]"})
    EXPECT_THROW(bench.run(text), Fault) << text;
}

}  // namespace
}  // namespace amd_sim
