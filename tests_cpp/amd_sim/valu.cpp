// Vector ALU instructions that work lane by lane: their sources, through DPP where they say so, and their results.
#include <algorithm>
#include <cmath>

#include "amd_sim/valu_ops.h"

namespace amd_sim {
namespace {

using Op = ValuOp;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

#define U(x) static_cast<u32>(x)

float scaled(float v, const Inst& i) {
  if (i.omod != 0) v *= i.omod == 1 ? 2.0f : i.omod == 2 ? 4.0f : 0.5f;
  return i.clamp ? (v > 0 ? std::min(v, 1.0f) : 0.0f) : v;
}

}  // namespace

void source(Wave& w, const Inst& i, const Operand& o, char type, u64 out[kLanes]) {
  const bool wide = type == 'l' || type == 'd';
  if (o.kind == Kind::vgpr) {
    w.check_v(i, o.reg, wide ? 2 : 1);
    for (int l = 0; l < kLanes; ++l) out[l] = w.v[o.reg][l] | (wide ? static_cast<u64>(w.v[o.reg + 1][l]) << 32 : 0);
  } else {
    u64 v;
    if (o.kind == Kind::fimm) {
      const bool inv2pi = o.f > 0.159154 && o.f < 0.159156;
      if (type == 'h' || type == 's' || type == 'p')
        v = inv2pi ? 0x3118 : bits16(o.f);
      else if (wide)
        v = inv2pi ? 0x3FC45F306DC9C882ull : bits64(o.f);
      else
        v = w.get(i, o);
    } else if (o.kind == Kind::imm) {
      v = type == 'd' && o.literal && o.imm <= 0xFFFFFFFF ? o.imm << 32 : wide ? o.imm : U(o.imm);
    } else {
      v = wide ? w.get64(i, o) : w.get(i, o);
    }
    for (int l = 0; l < kLanes; ++l) out[l] = v;
  }
  bool high = o.high;
  if (i.op_sel != 0 && (type == 'h' || type == 's')) {
    const auto k = &o - i.op.data();  // which operand
    high |= k >= 1 && (i.op_sel >> (k - 1) & 1) != 0;
  }
  if (high)
    for (int l = 0; l < kLanes; ++l) out[l] >>= 16;
  if (o.abs || o.neg) {
    const u64 sign = type == 'd' ? 1ull << 63 : type == 'h' ? 0x8000 : 0x80000000;
    for (int l = 0; l < kLanes; ++l) out[l] = ((o.abs ? out[l] & ~sign : out[l])) ^ (o.neg ? sign : 0);
  }
}

std::uint32_t through_dpp(const Wave& w, const Inst& i, u64 out[kLanes]) {
  if (i.dpp == Dpp::none) return ~0u;
  u64 in[kLanes];
  std::copy_n(out, kLanes, in);
  u32 write = 0;
  for (int l = 0; l < kLanes; ++l) {
    const int row = l & ~15, p = l & 15, n = i.sel[0];
    int from = -1;
    switch (i.dpp) {
      case Dpp::quad_perm: from = (l & ~3) | i.sel[l & 3]; break;
      case Dpp::row_shl: from = p + n < 16 ? row + p + n : -1; break;
      case Dpp::row_shr: from = p - n >= 0 ? row + p - n : -1; break;
      case Dpp::row_ror: from = row + ((p - n) & 15); break;
      case Dpp::row_mirror: from = row + 15 - p; break;
      case Dpp::row_half_mirror: from = (l & ~7) | (7 - (l & 7)); break;
      case Dpp::row_share: from = row + n; break;
      case Dpp::row_xmask: from = row + (p ^ n); break;
      case Dpp::dpp8: from = (l & ~7) | i.sel[l & 7]; break;
      default: break;
    }
    bool ok = (i.row_mask >> (l / 16) & 1) && (i.bank_mask >> (p / 4) & 1);
    const bool valid = from >= 0 && (w.on(from) || i.fi);
    if (i.dpp == Dpp::dpp8) {
      out[l] = valid ? in[from] : 0;
      ok = true;
    } else {
      out[l] = valid ? in[from] : 0;
      if (!valid && !i.bound_ctrl) ok = false;
    }
    if (ok) write |= 1u << l;
  }
  return write;
}

void run_valu(Wave& w, const Inst& i) {
  const Op& op = *static_cast<const Op*>(i.table);
  // A comparison that writes EXEC (v_cmpx) names no destination.
  const bool mask = op.types[0] == 'o', cmpx = i.name.compare(0, 6, "v_cmpx") == 0;
  const std::size_t first = cmpx ? 0 : 1;
  u64 in[3][kLanes];
  u32 lanes = w.exec();
  u32 dpp = ~0u;
  for (std::size_t k = 0; op.types[k + 1] != 0; ++k) {
    if (first + k >= i.op.size()) throw Fault(kMalformed, "too few operands: " + i.full);
    source(w, i, i.op[first + k], op.types[k + 1], in[k]);
    if (k == 0) dpp = through_dpp(w, i, in[0]);
  }
  const int n = static_cast<int>(std::strlen(op.types)) - 1;
  if (mask) {
    u32 result = 0;
    for (int l = 0; l < kLanes; ++l)
      if ((lanes & dpp) >> l & 1) result |= U(op.fn(in[0][l], n > 1 ? in[1][l] : 0, 0, 0) & 1) << l;
    if (cmpx)
      w.s[kExec] = result;
    else
      w.set(i, i.op[0], result);
    return;
  }
  const Operand& to = i.op[0];
  const char type = op.types[0];
  const bool wide = type == 'l' || type == 'd', half = type == 'h' || type == 's';
  w.check_v(i, to.reg, wide ? 2 : 1);
  if (i.clamp && !op.saturates && (type == 'i' || type == 's' || type == 'l'))
    throw Fault(kMalformed, "integer clamp is not supported: " + i.full);
  const bool high = half && (to.high || (i.op_sel >> n & 1) != 0);  // the list ends with the result's half
  for (int l = 0; l < kLanes; ++l) {
    if (((lanes & dpp) >> l & 1) == 0) continue;
    const u32 old = w.v[to.reg][l];
    u64 r = op.fn(in[0][l], n > 1 ? in[1][l] : 0, n > 2 ? in[2][l] : 0, half && high ? old >> 16 : old);
    if (type == 'f' && (i.omod != 0 || i.clamp)) r = bits(scaled(f32(r), i));
    if (half) {
      r &= 0xFFFF;
      r = high ? (old & 0xFFFF) | r << 16 : (old & 0xFFFF0000) | r;
    }
    w.v[to.reg][l] = U(r);
    if (wide) w.v[to.reg + 1][l] = U(r >> 32);
  }
}

void bind_valu(Inst& i) {
  std::string name = i.name;
  if (name.starts_with("v_cmpx")) name = "v_cmp" + name.substr(6);
  const ValuOp* op = i.clamp ? find_valu_op(name + " clamp") : nullptr;
  if (op == nullptr) op = find_valu_op(name);
  if (op == nullptr) return;
  i.table = op;
  i.run = run_valu;
  i.cls = op->cls;
  i.approximate = op->approximate;
}

}  // namespace amd_sim
