// Scalar instructions: the scalar ALU, branches, waits, barriers.
#include <algorithm>
#include <bit>
#include <cmath>

#include "amd_sim/machine.h"

namespace amd_sim {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

// Result and SCC of a scalar instruction; scc < 0 leaves it alone.
struct Out {
  u64 value;
  int scc = -1;
};
using Fn = Out (*)(u64 a, u64 b, u64 d, u32 scc);  // d: the destination before
struct Op {
  const char* types;  // i 32 bits, l 64 bits: result and sources; 'n' as result: SCC alone
  Fn fn;
};

#define OP(...)                                                                                                 \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 d, [[maybe_unused]] u32 scc) -> Out { \
    return __VA_ARGS__;                                                                                         \
  }
#define U(x) static_cast<u32>(x)
#define I(x) static_cast<i32>(x)
#define NZ(expr)                                                                                                \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 d, [[maybe_unused]] u32 scc) -> Out { \
    const u32 r = U(expr);                                                                                      \
    return {r, r != 0};                                                                                         \
  }
#define NZ64(expr)                                                                                              \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 d, [[maybe_unused]] u32 scc) -> Out { \
    const u64 r = (expr);                                                                                       \
    return {r, r != 0};                                                                                         \
  }
#define VAL(expr)                                                                                               \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 d, [[maybe_unused]] u32 scc) -> Out { \
    return {expr};                                                                                              \
  }
#define CMP(expr)                                                                                               \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 d, [[maybe_unused]] u32 scc) -> Out { \
    return {0, (expr) ? 1 : 0};                                                                                 \
  }
#define FL(expr)                                                                                                \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 d, [[maybe_unused]] u32 scc) -> Out { \
    [[maybe_unused]] const float x = f32(a), y = f32(b), o = f32(d);                                            \
    return {bits(static_cast<float>(expr))};                                                                    \
  }
#define FC(expr)                                                                                                \
  []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 d, [[maybe_unused]] u32 scc) -> Out { \
    const float x = f32(a), y = f32(b);                                                                         \
    return {0, (expr) ? 1 : 0};                                                                                 \
  }

Out brev_b32_op(u64 a, u64, u64, u32) {
  u32 r = 0;
  for (int k = 0; k < 32; ++k) r |= U(a >> k & 1) << (31 - k);
  return {r};
}

Out bfe_i32_op(u64 a, u64 b, u64, u32) {
  const u32 n = b >> 16 & 127;
  const u32 v = U(a) >> (b & 31);
  const u32 r = n == 0 ? 0 : n >= 32 ? v : U(I(v << (32 - n)) >> (32 - n));
  return {r, r != 0};
}

Out add_co_u32_op(u64 a, u64 b, u64, u32) {
  const u64 r = U(a) + static_cast<u64>(U(b));
  return {U(r), static_cast<int>(r >> 32)};
}

Out add_co_i32_op(u64 a, u64 b, u64, u32) {
  i32 r;
  const bool o = __builtin_add_overflow(I(a), I(b), &r);
  return {U(r), o};
}

Out sub_co_i32_op(u64 a, u64 b, u64, u32) {
  i32 r;
  const bool o = __builtin_sub_overflow(I(a), I(b), &r);
  return {U(r), o};
}

Out add_co_ci_u32_op(u64 a, u64 b, u64, u32 scc) {
  const u64 r = static_cast<u64>(U(a)) + U(b) + scc;
  return {U(r), static_cast<int>(r >> 32)};
}

Out lshl1_add_u32_op(u64 a, u64 b, u64, u32) {
  const u64 r = (a << 1) + b;
  return {U(r), r > 0xFFFFFFFF};
}

Out lshl2_add_u32_op(u64 a, u64 b, u64, u32) {
  const u64 r = (a << 2) + b;
  return {U(r), r > 0xFFFFFFFF};
}

Out lshl3_add_u32_op(u64 a, u64 b, u64, u32) {
  const u64 r = (a << 3) + b;
  return {U(r), r > 0xFFFFFFFF};
}

Out lshl4_add_u32_op(u64 a, u64 b, u64, u32) {
  const u64 r = (a << 4) + b;
  return {U(r), r > 0xFFFFFFFF};
}

Out addk_i32_op(u64 a, u64, u64 d, u32) {
  i32 r;
  const bool o = __builtin_add_overflow(I(d), static_cast<std::int16_t>(a), &r);
  return {U(r), o};
}

Out addk_co_i32_op(u64 a, u64, u64 d, u32) {
  i32 r;
  const bool o = __builtin_add_overflow(I(d), static_cast<std::int16_t>(a), &r);
  return {U(r), o};
}

Out cvt_i32_f32_op(u64 a, u64, u64, u32) {
  const float x = f32(a);
  return {U(std::isnan(x)         ? 0
            : x >= 2147483648.0f  ? INT32_MAX
            : x <= -2147483648.0f ? INT32_MIN
                                  : static_cast<i32>(x))};
}

Out cvt_u32_f32_op(u64 a, u64, u64, u32) {
  const float x = f32(a);
  return {std::isnan(x) || x <= 0 ? 0u : x >= 4294967296.0f ? ~0u : static_cast<u32>(x)};
}

const std::unordered_map<std::string, Op>& table() {
  static const auto t = [] {
    std::unordered_map<std::string, Op> m = {
        {"s_mov_b32", {"ii", VAL(a)}},
        {"s_mov_b64", {"ll", VAL(a)}},
        {"s_cmov_b32", {"ii", OP(Out{scc ? a : d})}},
        {"s_cmov_b64", {"ll", OP(Out{scc ? a : d})}},
        {"s_not_b32", {"ii", NZ(~a)}},
        {"s_not_b64", {"ll", NZ64(~a)}},
        {"s_brev_b32", {"ii", brev_b32_op}},
        {"s_ctz_i32_b32", {"ii", VAL(U(a) == 0 ? ~0u : U(std::countr_zero(U(a))))}},
        {"s_ctz_i32_b64", {"il", VAL(a == 0 ? ~0u : U(std::countr_zero(a)))}},
        {"s_clz_i32_u32", {"ii", VAL(U(a) == 0 ? ~0u : U(std::countl_zero(U(a))))}},
        {"s_clz_i32_u64", {"il", VAL(a == 0 ? ~0u : U(std::countl_zero(a)))}},
        {"s_bcnt1_i32_b32", {"ii", NZ(std::popcount(U(a)))}},
        {"s_bcnt1_i32_b64", {"il", NZ(std::popcount(a))}},
        {"s_sext_i32_i8", {"ii", VAL(U(static_cast<std::int8_t>(a)))}},
        {"s_sext_i32_i16", {"ii", VAL(U(static_cast<std::int16_t>(a)))}},
        {"s_bitset0_b32", {"ii", VAL(d & ~(1ull << (a & 31)))}},
        {"s_bitset1_b32", {"ii", VAL(d | 1ull << (a & 31))}},
        {"s_abs_i32", {"ii", NZ(std::abs(static_cast<i64>(I(a))))}},
        {"s_and_b32", {"iii", NZ(a & b)}},
        {"s_and_b64", {"lll", NZ64(a & b)}},
        {"s_or_b32", {"iii", NZ(a | b)}},
        {"s_or_b64", {"lll", NZ64(a | b)}},
        {"s_xor_b32", {"iii", NZ(a ^ b)}},
        {"s_xor_b64", {"lll", NZ64(a ^ b)}},
        {"s_nand_b32", {"iii", NZ(~(a & b))}},
        {"s_nor_b32", {"iii", NZ(~(a | b))}},
        {"s_xnor_b32", {"iii", NZ(~(a ^ b))}},
        {"s_and_not1_b32", {"iii", NZ(a & ~b)}},
        {"s_and_not1_b64", {"lll", NZ64(a & ~b)}},
        {"s_or_not1_b32", {"iii", NZ(a | ~b)}},
        {"s_lshl_b32", {"iii", NZ(U(a) << (b & 31))}},
        {"s_lshl_b64", {"lli", NZ64(a << (b & 63))}},
        {"s_lshr_b32", {"iii", NZ(U(a) >> (b & 31))}},
        {"s_lshr_b64", {"lli", NZ64(a >> (b & 63))}},
        {"s_ashr_i32", {"iii", NZ(I(a) >> (b & 31))}},
        {"s_ashr_i64", {"lli", NZ64(static_cast<u64>(static_cast<i64>(a) >> (b & 63)))}},
        {"s_bfe_u32", {"iii", NZ(U(a) >> (b & 31) & U((1ull << std::min<u64>(b >> 16 & 127, 32)) - 1))}},
        {"s_bfe_i32", {"iii", bfe_i32_op}},
        {"s_bfm_b32", {"iii", VAL(U(((1u << (a & 31)) - 1) << (b & 31)))}},
        {"s_add_co_u32", {"iii", add_co_u32_op}},
        {"s_add_co_i32", {"iii", add_co_i32_op}},
        {"s_sub_co_u32", {"iii", OP(Out{U(a - b), U(a) < U(b)})}},
        {"s_sub_co_i32", {"iii", sub_co_i32_op}},
        {"s_add_co_ci_u32", {"iii", add_co_ci_u32_op}},
        {"s_sub_co_ci_u32", {"iii", OP(Out{U(a - b - scc), static_cast<u64>(U(a)) < static_cast<u64>(U(b)) + scc})}},
        {"s_add_nc_u64", {"lll", VAL(a + b)}},
        {"s_sub_nc_u64", {"lll", VAL(a - b)}},
        {"s_mul_u64", {"lll", VAL(a * b)}},
        {"s_mul_i32", {"iii", VAL(U(a * b))}},
        {"s_mul_hi_u32", {"iii", VAL(static_cast<u64>(U(a)) * U(b) >> 32)}},
        {"s_mul_hi_i32", {"iii", VAL(U(static_cast<u64>(static_cast<i64>(I(a)) * I(b)) >> 32))}},
        {"s_min_u32", {"iii", OP(Out{std::min(U(a), U(b)), U(a) < U(b)})}},
        {"s_max_u32", {"iii", OP(Out{std::max(U(a), U(b)), U(a) >= U(b)})}},
        {"s_min_i32", {"iii", OP(Out{U(std::min(I(a), I(b))), I(a) < I(b)})}},
        {"s_max_i32", {"iii", OP(Out{U(std::max(I(a), I(b))), I(a) >= I(b)})}},
        {"s_lshl1_add_u32", {"iii", lshl1_add_u32_op}},
        {"s_lshl2_add_u32", {"iii", lshl2_add_u32_op}},
        {"s_lshl3_add_u32", {"iii", lshl3_add_u32_op}},
        {"s_lshl4_add_u32", {"iii", lshl4_add_u32_op}},
        {"s_pack_ll_b32_b16", {"iii", VAL((a & 0xFFFF) | (b & 0xFFFF) << 16)}},
        {"s_pack_lh_b32_b16", {"iii", VAL((a & 0xFFFF) | (b & 0xFFFF0000))}},
        {"s_pack_hh_b32_b16", {"iii", VAL((a >> 16 & 0xFFFF) | (b & 0xFFFF0000))}},
        {"s_pack_hl_b32_b16", {"iii", VAL((a >> 16 & 0xFFFF) | (b & 0xFFFF) << 16)}},
        {"s_cselect_b32", {"iii", OP(Out{scc ? a : b})}},
        {"s_cselect_b64", {"lll", OP(Out{scc ? a : b})}},
        {"s_cmp_eq_u64", {"nll", CMP(a == b)}},
        {"s_cmp_lg_u64", {"nll", CMP(a != b)}},
        {"s_bitcmp0_b32", {"nii", CMP((a >> (b & 31) & 1) == 0)}},
        {"s_bitcmp1_b32", {"nii", CMP((a >> (b & 31) & 1) != 0)}},
        {"s_movk_i32", {"ii", VAL(U(static_cast<std::int16_t>(a)))}},
        {"s_addk_i32", {"ii", addk_i32_op}},
        {"s_addk_co_i32", {"ii", addk_co_i32_op}},
        {"s_mulk_i32", {"ii", VAL(U(d * static_cast<u64>(static_cast<i64>(static_cast<std::int16_t>(a)))))}},
        // scalar floats of gfx11.5 and gfx12
        {"s_add_f32", {"iii", FL(x + y)}},
        {"s_sub_f32", {"iii", FL(x - y)}},
        {"s_mul_f32", {"iii", FL(x * y)}},
        {"s_fmac_f32", {"iii", FL(std::fma(x, y, o))}},
        {"s_max_num_f32",
         {"iii", FL(std::isnan(x)   ? y
                    : std::isnan(y) ? x
                                    : std::max(x, y))}},
        {"s_min_num_f32",
         {"iii", FL(std::isnan(x)   ? y
                    : std::isnan(y) ? x
                                    : std::min(x, y))}},
        {"s_floor_f32", {"ii", FL(std::floor(x))}},
        {"s_ceil_f32", {"ii", FL(std::ceil(x))}},
        {"s_trunc_f32", {"ii", FL(std::trunc(x))}},
        {"s_rndne_f32", {"ii", FL(std::nearbyint(x))}},
        {"s_cvt_f32_i32", {"ii", VAL(bits(static_cast<float>(I(a))))}},
        {"s_cvt_f32_u32", {"ii", VAL(bits(static_cast<float>(U(a))))}},
        {"s_cvt_f32_f16", {"ii", VAL(bits(f16(a)))}},
        {"s_cvt_hi_f32_f16", {"ii", VAL(bits(f16(a >> 16)))}},
        {"s_cvt_f16_f32", {"ii", VAL(bits16(f32(a)))}},
        {"s_cvt_i32_f32", {"ii", cvt_i32_f32_op}},
        {"s_cvt_u32_f32", {"ii", cvt_u32_f32_op}},
        {"s_cmp_lt_f32", {"nii", FC(x < y)}},
        {"s_cmp_eq_f32", {"nii", FC(x == y)}},
        {"s_cmp_le_f32", {"nii", FC(x <= y)}},
        {"s_cmp_gt_f32", {"nii", FC(x > y)}},
        {"s_cmp_lg_f32", {"nii", FC(x < y || x > y)}},
        {"s_cmp_ge_f32", {"nii", FC(x >= y)}},
        {"s_cmp_o_f32", {"nii", FC(!std::isnan(x) && !std::isnan(y))}},
        {"s_cmp_u_f32", {"nii", FC(std::isnan(x) || std::isnan(y))}},
        {"s_cmp_nlg_f32", {"nii", FC(!(x < y || x > y))}},
        {"s_cmp_nlt_f32", {"nii", FC(!(x < y))}},
        {"s_cmp_neq_f32", {"nii", FC(!(x == y))}},
        {"s_cmp_nle_f32", {"nii", FC(!(x <= y))}},
        {"s_cmp_ngt_f32", {"nii", FC(!(x > y))}},
        {"s_cmp_nge_f32", {"nii", FC(!(x >= y))}},
    };
    const auto put = [&m](const char* name, Fn u, Fn s) {
      m[std::string("s_cmp_") + name + "_u32"] = {"nii", u};
      m[std::string("s_cmp_") + name + "_i32"] = {"nii", s};
    };
    put("eq", CMP(U(a) == U(b)), CMP(U(a) == U(b)));
    put("lg", CMP(U(a) != U(b)), CMP(U(a) != U(b)));
    put("lt", CMP(U(a) < U(b)), CMP(I(a) < I(b)));
    put("le", CMP(U(a) <= U(b)), CMP(I(a) <= I(b)));
    put("gt", CMP(U(a) > U(b)), CMP(I(a) > I(b)));
    put("ge", CMP(U(a) >= U(b)), CMP(I(a) >= I(b)));
    // Of gfx11, with 16 bits in the instruction.
    const auto put_short = [&m](const char* name, Fn u, Fn s) {
      m[std::string("s_cmpk_") + name + "_u32"] = {"nii", u};
      m[std::string("s_cmpk_") + name + "_i32"] = {"nii", s};
    };
#define LOW(b) ((b) & 0xFFFF)
#define LOW_I(b) static_cast<std::int16_t>(b)
    put_short("eq", CMP(U(a) == LOW(b)), CMP(I(a) == LOW_I(b)));
    put_short("lg", CMP(U(a) != LOW(b)), CMP(I(a) != LOW_I(b)));
    put_short("lt", CMP(U(a) < LOW(b)), CMP(I(a) < LOW_I(b)));
    put_short("le", CMP(U(a) <= LOW(b)), CMP(I(a) <= LOW_I(b)));
    put_short("gt", CMP(U(a) > LOW(b)), CMP(I(a) > LOW_I(b)));
    put_short("ge", CMP(U(a) >= LOW(b)), CMP(I(a) >= LOW_I(b)));
#undef LOW
#undef LOW_I
    // As gfx11 names them.
    for (const auto& [old, now] : {std::pair{"s_max_f32", "s_max_num_f32"},
                                   {"s_min_f32", "s_min_num_f32"},
                                   {"s_add_u32", "s_add_co_u32"},
                                   {"s_add_i32", "s_add_co_i32"},
                                   {"s_sub_u32", "s_sub_co_u32"},
                                   {"s_sub_i32", "s_sub_co_i32"},
                                   {"s_addc_u32", "s_add_co_ci_u32"},
                                   {"s_subb_u32", "s_sub_co_ci_u32"}})
      m[old] = m[now];
    return m;
  }();
  return t;
}

void salu(Wave& w, const Inst& i) {
  const Op& op = *static_cast<const Op*>(i.table);
  const bool result = op.types[0] != 'n';
  const auto in = [&](std::size_t k) {
    return op.types[k + (result ? 0 : 1)] == 'l' ? w.get64(i, i.op.at(k)) : w.get(i, i.op.at(k));
  };
  const std::size_t first = result ? 1 : 0, n = std::strlen(op.types) - 1;
  const u64 a = in(first), b = n > 1 ? in(first + 1) : 0,
            d = result && i.op[0].reg != kNull ? (op.types[0] == 'l' ? w.get64(i, i.op[0]) : w.s[i.op[0].reg]) : 0;
  const Out out = op.fn(a, b, d, w.scc);
  if (result) op.types[0] == 'l' ? w.set64(i, i.op[0], out.value) : w.set(i, i.op[0], static_cast<u32>(out.value));
  if (out.scc >= 0) w.scc = static_cast<u32>(out.scc);
}

// New EXEC = EXEC op S0; the old one goes to the result.
template <int op>
void saveexec(Wave& w, const Inst& i) {
  const u32 s = w.get(i, i.op.at(1)), e = w.exec();
  const u32 now = op == 0 ? e & s : op == 1 ? e | s : op == 2 ? e ^ s : op == 3 ? s & ~e : op == 4 ? ~s & e : s | ~e;
  w.set(i, i.op[0], e);
  w.s[kExec] = now;
  w.scc = now != 0;
}

// s_fmaak_f32 and s_fmamk_f32: one of the factors or the summand is a literal.
void fma_literal(Wave& w, const Inst& i) {
  const auto in = [&](std::size_t k) { return f32(w.get(i, i.op.at(k))); };
  w.set(i, i.op.at(0), static_cast<u32>(bits(std::fma(in(1), in(2), in(3)))));
}

void jump(Wave& w, const Inst& i) {
  w.next = i.pc + i.size + 4 * static_cast<i64>(static_cast<std::int16_t>(i.word0));
}
template <int on, bool zero>  // of SCC, VCC or EXEC
void branch(Wave& w, const Inst& i) {
  if (on == 1) w.check_s(i, kVcc, 1);
  if (((on == 0 ? w.scc : on == 1 ? w.s[kVcc] : w.exec()) == 0) == zero) jump(w, i);
}
void getpc(Wave& w, const Inst& i) {
  w.set64(i, i.op.at(0), w.next);
}
void setpc(Wave& w, const Inst& i) {
  w.next = w.get64(i, i.op.at(0));
}
void swappc(Wave& w, const Inst& i) {
  const u64 to = w.get64(i, i.op.at(1));
  w.set64(i, i.op[0], w.next);
  w.next = to;
}
void call(Wave& w, const Inst& i) {
  w.set64(i, i.op.at(0), w.next);
  jump(w, i);
}

void nothing(Wave&, const Inst&) {}
void getreg(Wave& w, const Inst& i) {  // only clocks and modes are read by compiled code
  w.set(i, i.op.at(0), i.full.find("SHADER_CYCLES") != std::string::npos ? static_cast<u32>(w.steps) : 0);
}
void sendmsg_rtn(Wave& w, const Inst& i) {
  w.set(i, i.op.at(0), static_cast<u32>(w.steps));
}

void arrive(Group& g) {
  if (g.arrived == 0 || g.arrived + g.ended < static_cast<int>(g.waves.size())) return;
  g.arrived = 0;
  g.phase++;
  std::fill(g.lds_shadow.begin(), g.lds_shadow.end(), Group::LdsTouch{});
}
void end(Wave& w, const Inst&) {
  w.done = true;
  w.group->ended++;
  arrive(*w.group);
}
void signal(Wave& w, const Inst& i) {
  if (i.full.find("-1") == std::string::npos) throw Fault(kMalformed, "named barriers are not supported: " + i.full);
  if (w.signalled) throw Fault(kHazard, "a wave signals the barrier twice: " + i.full);
  w.signalled = true;
  w.phase = w.group->phase;
  w.group->arrived++;
  arrive(*w.group);
}
void barrier_wait(Wave& w, const Inst& i) {
  if (!w.signalled) throw Fault(kHazard, "a wave waits at a barrier that it did not signal: " + i.full);
  w.waiting = true;
}
void barrier(Wave& w, const Inst&) {
  w.signalled = w.waiting = true;
  w.phase = w.group->phase;
  w.group->arrived++;
  arrive(*w.group);
}

// gfx12 has a wait a counter, and three for two at once; gfx11 packs them.
void waits(Wave& w, const Inst& i) {
  const u32 n = i.word0 & 0xFFFF;
  const std::string& s = i.name;
  if (s == "s_wait_loadcnt")
    w.wait(kLoad, n);
  else if (s == "s_wait_storecnt")
    w.wait(kStore, n);
  else if (s == "s_wait_dscnt")
    w.wait(kDs, n);
  else if (s == "s_wait_kmcnt")
    w.wait(kKm, n);
  else if (s == "s_wait_loadcnt_dscnt")
    w.wait(kLoad, n >> 8 & 63), w.wait(kDs, n & 63);
  else if (s == "s_wait_storecnt_dscnt")
    w.wait(kStore, n >> 8 & 63), w.wait(kDs, n & 63);
  else if (s == "s_waitcnt") {  // gfx11: expcnt[2:0], lgkmcnt[9:4], vmcnt[15:10]
    w.wait(kLoad, n >> 10 & 63);
    const u32 lgkm = n >> 4 & 63;
    if (w.issued[kKm] == w.arrived[kKm]) w.wait(kDs, lgkm);
    if (lgkm == 0) w.wait(kDs, 0), w.wait(kKm, 0);
  } else if (s == "s_waitcnt_vscnt") {
    w.wait(kStore, n);
  }  // others wait for what is done at once here
}

// Scalar loads.
void smem(Wave& w, const Inst& i) {
  const bool buffer = i.name.compare(0, 8, "s_buffer") == 0;
  const Operand& to = i.op.at(0);
  const std::string t = i.name.substr(i.name.rfind('_') + 1);
  const u32 bytes = t == "u8" || t == "i8"     ? 1
                    : t == "u16" || t == "i16" ? 2
                                               : static_cast<u32>(std::atoi(t.c_str() + 1)) / 8;
  u64 base = w.get64(i, i.op.at(1));
  u64 limit = ~0ull;
  if (buffer) limit = w.s[i.op[1].reg + 2], w.check_s(i, i.op[1].reg, 4), base &= 0xFFFFFFFFFFFFull;
  i64 offset = i.offset;
  if (i.op.size() > 2)
    offset += i.op[2].kind == Kind::imm ? static_cast<i64>(i.op[2].imm) : static_cast<i64>(w.get(i, i.op[2]));
  u64 at = base + static_cast<u64>(offset);
  if (bytes >= 4) at &= ~3ull;
  w.check_s(i, to.reg, static_cast<int>((bytes + 3) / 4));
  w.counts->smem_bytes += bytes;
  u32 words[16] = {};
  if (!buffer || static_cast<u64>(offset) + bytes <= limit) {
    std::memcpy(words, w.machine->memory.at(at, bytes, false, i.name.c_str(), i.pc), bytes);
    w.machine->memory.touch(at, bytes, false, false, w.group->dispatch->first_group + w.group->number, i.pc);
  }
  if (t == "i8") words[0] = static_cast<u32>(static_cast<std::int8_t>(words[0]));
  if (t == "i16") words[0] = static_cast<u32>(static_cast<std::int16_t>(words[0]));
  for (u32 k = 0; k < (bytes + 3) / 4; ++k)
    if (to.reg != kNull) w.s[to.reg + k] = words[k];
  if (to.reg != kNull) w.pend(kKm, false, to.reg, static_cast<int>((bytes + 3) / 4));
}

}  // namespace

void bind_scalar(Inst& i) {
  const std::string& n = i.name;
  const auto begins = [&n](const char* with) { return n.rfind(with, 0) == 0; };
  static const std::unordered_map<std::string, std::pair<Run, Class>> t = {
      {"s_and_saveexec_b32", {saveexec<0>, kSalu}},
      {"s_or_saveexec_b32", {saveexec<1>, kSalu}},
      {"s_xor_saveexec_b32", {saveexec<2>, kSalu}},
      {"s_and_not1_saveexec_b32", {saveexec<3>, kSalu}},
      {"s_and_not0_saveexec_b32", {saveexec<4>, kSalu}},
      {"s_or_not1_saveexec_b32", {saveexec<5>, kSalu}},
      {"s_fmaak_f32", {fma_literal, kSalu}},
      {"s_fmamk_f32", {fma_literal, kSalu}},
      {"s_branch", {jump, kBranch}},
      {"s_cbranch_scc0", {branch<0, true>, kBranch}},
      {"s_cbranch_scc1", {branch<0, false>, kBranch}},
      {"s_cbranch_vccz", {branch<1, true>, kBranch}},
      {"s_cbranch_vccnz", {branch<1, false>, kBranch}},
      {"s_cbranch_execz", {branch<2, true>, kBranch}},
      {"s_cbranch_execnz", {branch<2, false>, kBranch}},
      {"s_getpc_b64", {getpc, kSalu}},
      {"s_setpc_b64", {setpc, kBranch}},
      {"s_swappc_b64", {swappc, kBranch}},
      {"s_call_b64", {call, kBranch}},
      {"s_endpgm", {end, kOther}},
      {"s_barrier_signal", {signal, kOther}},
      {"s_barrier_wait", {barrier_wait, kOther}},
      {"s_barrier", {barrier, kOther}},
      {"s_getreg_b32", {getreg, kSalu}},
      {"s_sendmsg_rtn_b64", {sendmsg_rtn, kSalu}},
  };
  if (const auto it = t.find(n); it != t.end()) {
    i.run = it->second.first, i.cls = it->second.second;
  } else if (const auto op = table().find(n); op != table().end()) {
    i.run = salu, i.table = &op->second, i.cls = kSalu;
  } else if (begins("s_wait")) {
    i.run = waits, i.cls = kWait;
  } else if (begins("s_load_") || begins("s_buffer_load_")) {
    i.run = smem, i.cls = kSmem;
  } else if (begins("s_delay_alu")) {
    i.run = nothing, i.cls = kWait;
  } else if (begins("s_nop") || begins("s_clause") || begins("s_sleep") || begins("s_setprio") || begins("s_sendmsg") ||
             begins("s_prefetch") || begins("s_icache") || begins("s_dcache") || begins("s_set_inst_prefetch") ||
             begins("s_ttrace") || begins("s_code_end") || begins("s_setreg")) {
    i.run = nothing, i.cls = kOther;
  }
}

}  // namespace amd_sim
