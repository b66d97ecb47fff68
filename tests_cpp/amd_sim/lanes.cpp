// Vector ALU instructions that carry, look at other lanes, are packed, or are matrices.
#include <algorithm>
#include <cmath>

#include "amd_sim/valu_ops.h"

namespace amd_sim {

namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;

struct In {
  u64 v[kLanes];
};
In take(Wave& w, const Inst& i, std::size_t k, char type) {
  In in;
  source(w, i, i.op.at(k), type, in.v);
  return in;
}
In take_raw(Wave& w, const Inst& i, std::size_t k, char type = 'i') {  // without neg and abs
  In in;
  Operand o = i.op.at(k);
  o.neg = o.abs = false;
  source(w, i, o, type, in.v);
  return in;
}
void put(Wave& w, const Inst& i, const Operand& to, const In& r, u32 lanes) {
  w.check_v(i, to.reg, 1);
  for (int l = 0; l < kLanes; ++l)
    if (lanes >> l & 1) w.v[to.reg][l] = static_cast<u32>(r.v[l]);
}
void put64(Wave& w, const Inst& i, const Operand& to, const In& r, u32 lanes) {
  w.check_v(i, to.reg, 2);
  for (int l = 0; l < kLanes; ++l)
    if (lanes >> l & 1) w.v[to.reg][l] = static_cast<u32>(r.v[l]), w.v[to.reg + 1][l] = static_cast<u32>(r.v[l] >> 32);
}

void cndmask(Wave& w, const Inst& i) {
  const bool half = i.name == "v_cndmask_b16";
  In a = take(w, i, 1, half ? 's' : 'f');
  const u32 dpp = through_dpp(w, i, a.v);
  const In b = take(w, i, 2, half ? 's' : 'f');
  const u32 mask = i.op.size() > 3 ? w.get(i, i.op[3]) : (w.check_s(i, kVcc, 1), w.s[kVcc]);
  for (int l = 0; l < kLanes; ++l) {
    if (mask >> l & 1) a.v[l] = b.v[l];
    const u64 old = w.v[i.op[0].reg][l];
    if (half) a.v[l] = i.op[0].high ? (old & 0xFFFF) | a.v[l] << 16 : (old & 0xFFFF0000) | (a.v[l] & 0xFFFF);
  }
  put(w, i, i.op[0], a, w.exec() & dpp);
}

// v_add_co_u32, v_sub_co_u32, v_subrev_co_u32 and those with a carry in.
template <int kind, bool carry_in>
void carry(Wave& w, const Inst& i) {
  In a = take(w, i, 2, 'i');
  const u32 dpp = through_dpp(w, i, a.v);
  const In b = take(w, i, 3, 'i');
  const u32 in = carry_in ? (i.op.size() > 4 ? w.get(i, i.op[4]) : w.s[kVcc]) : 0;
  u32 out = 0;
  In r;
  for (int l = 0; l < kLanes; ++l) {
    const u64 c = in >> l & 1, x = kind == 2 ? b.v[l] : a.v[l], y = kind == 2 ? a.v[l] : b.v[l];
    r.v[l] = kind == 0 ? x + y + c : x - y - c;
    if (w.on(l) && (r.v[l] >> 32 & 1) != 0) out |= 1u << l;
  }
  put(w, i, i.op[0], r, w.exec() & dpp);
  w.set(i, i.op[1], out);
}

template <bool is_signed>
void mad64(Wave& w, const Inst& i) {
  const In a = take(w, i, 2, 'i'), b = take(w, i, 3, 'i'), c = take(w, i, 4, 'l');
  In r;
  u32 out = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u64 p = is_signed
                      ? static_cast<u64>(static_cast<std::int64_t>(static_cast<i32>(a.v[l])) * static_cast<i32>(b.v[l]))
                      : static_cast<u64>(static_cast<u32>(a.v[l])) * static_cast<u32>(b.v[l]);
    r.v[l] = p + c.v[l];
    if (w.on(l) && r.v[l] < p) out |= 1u << l;
  }
  put64(w, i, i.op[0], r, w.exec());
  w.set(i, i.op[1], out);
}

template <bool wide>
void div_scale(Wave& w, const Inst& i) {
  const char type = wide ? 'd' : 'f';
  const In a = take(w, i, 2, type), b = take(w, i, 3, type), c = take(w, i, 4, type);
  In r;
  u32 out = 0;
  for (int l = 0; l < kLanes; ++l) {
    bool post = false;
    r.v[l] = wide ? bits64(div_scale64(f64(a.v[l]), f64(b.v[l]), f64(c.v[l]), post))
                  : bits(div_scale32(f32(a.v[l]), f32(b.v[l]), f32(c.v[l]), post));
    if (w.on(l) && post) out |= 1u << l;
  }
  wide ? put64(w, i, i.op[0], r, w.exec()) : put(w, i, i.op[0], r, w.exec());
  w.set(i, i.op[1], out);
}
template <bool wide>
void div_fmas(Wave& w, const Inst& i) {
  const char type = wide ? 'd' : 'f';
  const In a = take(w, i, 1, type), b = take(w, i, 2, type), c = take(w, i, 3, type);
  w.check_s(i, kVcc, 1);
  In r;
  for (int l = 0; l < kLanes; ++l) {
    const bool scale = w.s[kVcc] >> l & 1;
    r.v[l] = wide ? bits64(std::ldexp(std::fma(f64(a.v[l]), f64(b.v[l]), f64(c.v[l])), scale ? 64 : 0))
                  : bits(std::ldexp(std::fma(f32(a.v[l]), f32(b.v[l]), f32(c.v[l])), scale ? 32 : 0));
  }
  wide ? put64(w, i, i.op[0], r, w.exec()) : put(w, i, i.op[0], r, w.exec());
}

void readlane(Wave& w, const Inst& i) {
  w.check_v(i, i.op[1].reg, 1);
  w.set(i, i.op[0], w.v[i.op[1].reg][w.get(i, i.op[2]) & 31]);
}
void readfirstlane(Wave& w, const Inst& i) {
  int l = 0;
  while (l < 31 && !w.on(l)) ++l;
  if (w.exec() == 0) l = 0;
  const In a = take(w, i, 1, 'i');
  w.set(i, i.op[0], static_cast<u32>(a.v[l]));
}
void writelane(Wave& w, const Inst& i) {
  w.check_v(i, i.op[0].reg, 1);
  w.v[i.op[0].reg][w.get(i, i.op[2]) & 31] = w.get(i, i.op[1]);
}
template <bool other_row>
void permlane(Wave& w, const Inst& i) {
  const In a = take_raw(w, i, 1);
  const u64 sel = w.get(i, i.op[2]) | static_cast<u64>(w.get(i, i.op[3])) << 32;
  const bool fi = i.op_sel & 1, bc = i.op_sel >> 1 & 1;
  In r;
  u32 write = 0;
  for (int l = 0; l < kLanes; ++l) {
    const int from = ((l & 16) ^ (other_row ? 16 : 0)) | static_cast<int>(sel >> (4 * (l & 15)) & 15);
    const bool valid = w.on(from) || fi;
    r.v[l] = valid ? a.v[from] : 0;
    if (valid || bc) write |= 1u << l;
  }
  put(w, i, i.op[0], r, w.exec() & write);
}
void mbcnt_lo(Wave& w, const Inst& i) {
  const In a = take(w, i, 1, 'i'), b = take(w, i, 2, 'i');
  In r;
  for (int l = 0; l < kLanes; ++l)
    r.v[l] = static_cast<u32>(__builtin_popcount(static_cast<u32>(a.v[l]) & ((1u << l) - 1))) + b.v[l];
  put(w, i, i.op[0], r, w.exec());
}
void mbcnt_hi(Wave& w, const Inst& i) {
  put(w, i, i.op[0], take(w, i, 2, 'i'), w.exec());
}
void swap(Wave& w, const Inst& i) {
  const In a = take(w, i, 0, 'i'), b = take(w, i, 1, 'i');
  put(w, i, i.op[0], b, w.exec());
  put(w, i, i.op[1], a, w.exec());
}

// v_fma_mix_f32 and its halves: each source a float, or a half of it by op_sel_hi.
template <int result>  // 0 f32, 1 low half, 2 high half
void fma_mix(Wave& w, const Inst& i) {
  float x[3][kLanes];
  for (std::size_t k = 0; k < 3; ++k) {
    const Operand& o = i.op.at(k + 1);
    const bool half = i.op_sel_hi >> k & 1;
    const In in = take_raw(w, i, k + 1, half ? 'p' : 'f');
    for (int l = 0; l < kLanes; ++l) {
      float v = half ? f16(in.v[l] >> (i.op_sel >> k & 1 ? 16 : 0)) : f32(in.v[l]);
      if (o.abs) v = std::fabs(v);
      x[k][l] = o.neg ? -v : v;
    }
  }
  const Operand& to = i.op[0];
  w.check_v(i, to.reg, 1);
  for (int l = 0; l < kLanes; ++l) {
    if (!w.on(l)) continue;
    float v = std::fma(x[0][l], x[1][l], x[2][l]);
    if (i.clamp) v = v > 0 ? std::min(v, 1.0f) : 0.0f;
    u32& at = w.v[to.reg][l];
    if (result == 0) at = static_cast<u32>(bits(v));
    if (result == 1) at = (at & 0xFFFF0000) | static_cast<u32>(bits16(v));
    if (result == 2) at = (at & 0xFFFF) | static_cast<u32>(bits16(v)) << 16;
  }
}

using Pk = u32 (*)(u32 a, u32 b, u32 c);
#define PKF(expr)                                                     \
  +[](u32 a, u32 b, [[maybe_unused]] u32 c) -> u32 {                  \
    [[maybe_unused]] const double x = f16(a), y = f16(b), z = f16(c); \
    return static_cast<u32>(bits16(expr));                            \
  }
#define PKI(expr) +[](u32 a, u32 b, [[maybe_unused]] u32 c) -> u32 { return static_cast<u32>(expr); }
#define S16(x) static_cast<std::int16_t>(x)
const std::unordered_map<std::string, std::pair<Pk, int>>& packed() {
  static const std::unordered_map<std::string, std::pair<Pk, int>> t = {
      {"v_pk_add_f16", {PKF(x + y), 2}},
      {"v_pk_mul_f16", {PKF(x * y), 2}},
      {"v_pk_fma_f16", {PKF(std::fma(x, y, z)), 3}},
      {"v_pk_max_num_f16",
       {PKF(std::isnan(x)   ? y
            : std::isnan(y) ? x
                            : std::max(x, y)),
        2}},
      {"v_pk_min_num_f16",
       {PKF(std::isnan(x)   ? y
            : std::isnan(y) ? x
                            : std::min(x, y)),
        2}},
      {"v_pk_max_f16",
       {PKF(std::isnan(x)   ? y
            : std::isnan(y) ? x
                            : std::max(x, y)),
        2}},
      {"v_pk_min_f16",
       {PKF(std::isnan(x)   ? y
            : std::isnan(y) ? x
                            : std::min(x, y)),
        2}},
      {"v_pk_add_u16", {PKI(a + b), 2}},
      {"v_pk_add_i16", {PKI(a + b), 2}},
      {"v_pk_sub_u16", {PKI(a - b), 2}},
      {"v_pk_sub_i16", {PKI(a - b), 2}},
      {"v_pk_mul_lo_u16", {PKI(a * b), 2}},
      {"v_pk_mad_u16", {PKI(a * b + c), 3}},
      {"v_pk_mad_i16", {PKI(a * b + c), 3}},
      {"v_pk_lshlrev_b16", {PKI(b << (a & 15)), 2}},
      {"v_pk_lshrrev_b16", {PKI((b & 0xFFFF) >> (a & 15)), 2}},
      {"v_pk_ashrrev_i16", {PKI(S16(b) >> (a & 15)), 2}},
      {"v_pk_max_u16", {PKI(std::max(a & 0xFFFF, b & 0xFFFF)), 2}},
      {"v_pk_min_u16", {PKI(std::min(a & 0xFFFF, b & 0xFFFF)), 2}},
      {"v_pk_max_i16", {PKI(std::max(S16(a), S16(b))), 2}},
      {"v_pk_min_i16", {PKI(std::min(S16(a), S16(b))), 2}},
  };
  return t;
}
void pk(Wave& w, const Inst& i) {
  const auto& [fn, n] = *static_cast<const std::pair<Pk, int>*>(i.table);
  const u32 op_sel_hi = i.has_op_sel_hi ? i.op_sel_hi : 7;
  const bool is_float = i.name.find("_f16") != std::string::npos;
  In in[3] = {};
  for (int k = 0; k < n; ++k) in[k] = take_raw(w, i, static_cast<std::size_t>(k) + 1, is_float ? 'p' : 'i');
  In r;
  for (int l = 0; l < kLanes; ++l) {
    u32 both = 0;
    for (int h = 0; h < 2; ++h) {
      u32 x[3] = {};
      for (int k = 0; k < n; ++k) {
        x[k] = static_cast<u32>(in[k].v[l]) >> ((h == 0 ? i.op_sel : op_sel_hi) >> k & 1 ? 16 : 0) & 0xFFFF;
        if (is_float && ((h == 0 ? i.neg_lo : i.neg_hi) >> k & 1) != 0) x[k] ^= 0x8000;
      }
      both |= (fn(x[0], x[1], x[2]) & 0xFFFF) << (16 * h);
    }
    r.v[l] = both;
  }
  put(w, i, i.op[0], r, w.exec());
}

i32 digit(u64 word, int at, int width, bool is_signed) {
  const u32 v = static_cast<u32>(word >> at) & ((1u << width) - 1);
  return is_signed ? static_cast<i32>(v << (32 - width)) >> (32 - width) : static_cast<i32>(v);
}
template <int width>
void dot_iu(Wave& w, const Inst& i) {
  const In a = take_raw(w, i, 1), b = take_raw(w, i, 2), c = take_raw(w, i, 3);
  In r;
  for (int l = 0; l < kLanes; ++l) {
    std::int64_t s = static_cast<i32>(c.v[l]);
    for (int k = 0; k < 32; k += width)
      s += digit(a.v[l], k, width, i.neg_lo & 1) * digit(b.v[l], k, width, i.neg_lo >> 1 & 1);
    if (i.clamp) s = std::clamp<std::int64_t>(s, INT32_MIN, INT32_MAX);
    r.v[l] = static_cast<u32>(s);
  }
  put(w, i, i.op[0], r, w.exec());
}

// Eight bits: 1.4.3 with bias 7, or 1.5.2 with bias 15.
float fp8(u32 v, bool bf8) {
  const u32 m_bits = bf8 ? 2 : 3, bias = bf8 ? 15 : 7, e = v >> m_bits & (bf8 ? 31 : 15), m = v & ((1u << m_bits) - 1);
  float f;
  if (bf8 && e == 31)
    f = m != 0 ? NAN : INFINITY;
  else if (!bf8 && (v & 127) == 127)
    f = NAN;
  else if (e == 0)
    f = std::ldexp(static_cast<float>(m), 1 - static_cast<int>(bias + m_bits));
  else
    f = std::ldexp(static_cast<float>(m | 1u << m_bits), static_cast<int>(e) - static_cast<int>(bias + m_bits));
  return v & 0x80 ? -f : f;
}

// D = A x B + C in tiles of 16 x 16. The order of a float sum is not known of the hardware: here in double, rounded once.
void wmma(Wave& w, const Inst& i) {
  const bool gfx11 = w.group->dispatch->gfx11;
  if (w.exec() != ~0u) throw Fault(kHazard, "WMMA with lanes switched off: " + i.full);
  const std::string& n = i.name;
  const int k_dim = n.find("16x16x32") != std::string::npos ? 32 : 16;
  const std::string in_type = n.substr(n.find("16x16x") + 9);
  const bool eight = in_type.compare(1, 2, "p8") == 0 || in_type.compare(1, 2, "f8") == 0;
  const int width = in_type == "iu4" ? 4 : in_type == "iu8" || eight ? 8 : 16;
  const bool ints = in_type[0] == 'i', f32_out = n.compare(7, 3, "f32") == 0;
  if (!ints && !f32_out) throw Fault(kMalformed, "WMMA with 16-bit results is not supported: " + i.full);
  const bool a_bf8 = in_type.compare(0, 3, "bf8") == 0, b_bf8 = in_type.size() > 4 && in_type.compare(4, 3, "bf8") == 0;
  const int per_lane = gfx11 ? k_dim : k_dim / 2, regs = per_lane * width / 32;
  const Operand &A = i.op.at(1), &B = i.op.at(2), &C = i.op.at(3), &D = i.op.at(0);
  w.check_v(i, A.reg, regs), w.check_v(i, B.reg, regs), w.check_v(i, D.reg, 8);
  if (C.kind == Kind::vgpr) w.check_v(i, C.reg, 8);
  double a[16][32], b[32][16];
  for (int l = 0; l < kLanes; ++l)
    for (int j = 0; j < per_lane; ++j) {
      const int k = gfx11 ? j : (l / 16) * per_lane + j, at = j * width;
      const u32 aw = w.v[A.reg + at / 32][l] >> (at % 32), bw = w.v[B.reg + at / 32][l] >> (at % 32);
      double x, y;
      if (ints)
        x = digit(aw, 0, width, i.neg_lo & 1), y = digit(bw, 0, width, i.neg_lo >> 1 & 1);
      else if (width == 8)
        x = fp8(aw & 255, a_bf8), y = fp8(bw & 255, b_bf8);
      else if (in_type == "bf16")
        x = bf16(aw), y = bf16(bw);
      else
        x = f16(aw & 0xFFFF), y = f16(bw & 0xFFFF);
      if (gfx11 && l >= 16 && (a[l & 15][k] != x || b[k][l & 15] != y))
        throw Fault(kHazard, "WMMA on gfx11 wants lanes 16 to 31 to repeat lanes 0 to 15: " + i.full);
      a[l & 15][k] = x, b[k][l & 15] = y;
    }
  u32 result[8][kLanes];
  for (int l = 0; l < kLanes; ++l)
    for (int j = 0; j < 8; ++j) {
      const int m = gfx11 ? 2 * j + l / 16 : (l / 16) * 8 + j;
      const u32 c = C.kind == Kind::vgpr   ? w.v[C.reg + j][l]
                    : C.kind == Kind::fimm ? static_cast<u32>(bits(static_cast<float>(C.f)))
                                           : static_cast<u32>(C.imm);
      double s = 0;
      for (int k = 0; k < k_dim; ++k) s += a[m][k] * b[k][l & 15];
      if (ints) {
        std::int64_t t = static_cast<std::int64_t>(s) + static_cast<i32>(c);
        if (i.clamp) t = std::clamp<std::int64_t>(t, INT32_MIN, INT32_MAX);
        result[j][l] = static_cast<u32>(t);
      } else {
        result[j][l] = static_cast<u32>(bits(static_cast<float>(s + f32(c))));
      }
    }
  for (int j = 0; j < 8; ++j)
    for (int l = 0; l < kLanes; ++l) w.v[D.reg + j][l] = result[j][l];
  w.counts->wmma_cycles += gfx11 ? (width == 4 ? 16 : 32) : static_cast<u64>(16 * k_dim / 16 * width / 16);
}

// Two instructions that read before either writes.
void pair(Wave& w, const Inst& i) {
  const auto* x = static_cast<const Inst*>(i.table);
  const int reg = x->op[0].reg;
  const auto before = w.v[reg];
  x->run(w, *x);
  const auto after = w.v[reg];
  w.v[reg] = before;
  i.second->run(w, *i.second);
  w.v[reg] = after;
}

void nothing(Wave&, const Inst&) {}

const std::unordered_map<std::string, Run>& specials() {
  static const std::unordered_map<std::string, Run> t = {
      {"v_cndmask_b32", cndmask},
      {"v_cndmask_b16", cndmask},
      {"v_add_co_u32", carry<0, false>},
      {"v_sub_co_u32", carry<1, false>},
      {"v_subrev_co_u32", carry<2, false>},
      {"v_add_co_ci_u32", carry<0, true>},
      {"v_sub_co_ci_u32", carry<1, true>},
      {"v_subrev_co_ci_u32", carry<2, true>},
      {"v_mad_co_u64_u32", mad64<false>},
      {"v_mad_u64_u32", mad64<false>},
      {"v_mad_co_i64_i32", mad64<true>},
      {"v_mad_i64_i32", mad64<true>},
      {"v_div_scale_f32", div_scale<false>},
      {"v_div_scale_f64", div_scale<true>},
      {"v_div_fmas_f32", div_fmas<false>},
      {"v_div_fmas_f64", div_fmas<true>},
      {"v_readlane_b32", readlane},
      {"v_readfirstlane_b32", readfirstlane},
      {"v_writelane_b32", writelane},
      {"v_permlane16_b32", permlane<false>},
      {"v_permlanex16_b32", permlane<true>},
      {"v_mbcnt_lo_u32_b32", mbcnt_lo},
      {"v_mbcnt_hi_u32_b32", mbcnt_hi},
      {"v_swap_b32", swap},
      {"v_fma_mix_f32", fma_mix<0>},
      {"v_fma_mixlo_f16", fma_mix<1>},
      {"v_fma_mixhi_f16", fma_mix<2>},
      {"v_dot4_i32_iu8", dot_iu<8>},
      {"v_dot8_i32_iu4", dot_iu<4>},
      {"v_nop", nothing},
  };
  return t;
}

}  // namespace

void bind_lanes(Inst& i) {
  if (const auto it = specials().find(i.name); it != specials().end()) {
    i.run = it->second;
    i.cls = kValu;
  } else if (const auto p = packed().find(i.name); p != packed().end()) {
    i.run = pk, i.table = &p->second;
    i.cls = kValu;
  } else if (i.name.compare(0, 7, "v_wmma_") == 0) {
    i.run = wmma;
    i.cls = kWmma;
  }
}

// The first half of a VOPD becomes an instruction of its own, so that `pair` can run both.
void bind(Inst& i) {
  if (i.second != nullptr) {
    static std::vector<std::unique_ptr<Inst>> firsts;
    auto x = parse(i.text, i.pc, i.size, i.word0);
    bind(*x);
    bind(*i.second);
    i.approximate = x->approximate || i.second->approximate;
    i.table = x.get();
    firsts.push_back(std::move(x));
    i.run = pair;
    i.cls = kValu;
    i.hazard = hazard_of(i);
    return;
  }
  const char c = i.name[0];
  if (i.name.compare(0, 2, "v_") == 0) {
    bind_lanes(i);
    if (i.run == nullptr) bind_valu(i);
  } else if (c == 's' && i.name.compare(0, 8, "scratch_") != 0) {
    bind_scalar(i);
  } else {
    bind_memory(i);
  }
  if (i.run == nullptr) throw Fault(kMalformed, "not known to the emulator");
  i.hazard = hazard_of(i);
}

}  // namespace amd_sim
