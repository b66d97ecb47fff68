// The hazard of scalar registers on gfx12 (not gfx1250): once a vector instruction has read an SGPR pair, a later write of it must be
// waited for with s_wait_alu before it is read again. clang 20 and later insert the waits; clang 19 does not know them.
// Rules as LLVM's pass of the same purpose states them (llvm/llvm-project:llvm/lib/Target/AMDGPU/AMDGPUWaitSGPRHazards.cpp).
#include "amd_sim/machine.h"

namespace amd_sim {
namespace {

using Register = SgprRange;
bool tracked_kind(const Operand& o) {
  return o.kind == Kind::sgpr && o.reg != kNull && o.reg != kM0 && o.reg != kExec && o.reg != kExec + 1 && o.reg < 128;
}
bool is_vcc(int reg) {
  return reg == kVcc || reg == kVcc + 1;
}
bool begins(const std::string& s, const char* with) {
  return s.rfind(with, 0) == 0;
}

void registers(const Inst& i, std::vector<Register>& uses, std::vector<Register>& defs) {
  const std::string& n = i.name;
  const bool vector = n[0] == 'v';
  std::size_t results = 1;
  if (begins(n, "s_cmp") || begins(n, "s_bitcmp") || begins(n, "s_setpc") || begins(n, "v_cmpx") || begins(n, "v_nop"))
    results = 0;
  if (vector && (n.find("_co_") != std::string::npos || begins(n, "v_div_scale") || begins(n, "v_mad_u64") ||
                 begins(n, "v_mad_i64") || n == "v_swap_b32"))
    results = 2;
  for (std::size_t k = 0; k < i.op.size(); ++k) {
    if (!tracked_kind(i.op[k])) continue;
    const Register r{i.op[k].reg, i.op[k].n};
    (k < results ? defs : uses).push_back(r);
    const bool tied = !vector && k == 0 &&
                      (begins(n, "s_fmac") || begins(n, "s_addk") || begins(n, "s_mulk") || begins(n, "s_bitset") ||
                       begins(n, "s_cmov"));
    if (tied) uses.push_back(r);
  }
  if (begins(n, "v_div_fmas") || n.find("_vccz") != std::string::npos || n.find("_vccnz") != std::string::npos)
    uses.push_back({kVcc, 1});
  if (n == "v_cndmask_b32" && i.op.size() == 3) uses.push_back({kVcc, 1});
  if (vector && n.find("_co_ci_") != std::string::npos && i.op.size() == 4) uses.push_back({kVcc, 1});
}

}  // namespace

HazardInfo hazard_of(const Inst& i) {
  const std::string& n = i.name;
  HazardInfo info;
  if (begins(n, "s_load_") || begins(n, "s_buffer_") || begins(n, "s_prefetch") || begins(n, "buffer_"))
    info.kind = HazardInfo::kClears;
  else if (begins(n, "s_wait_alu"))
    info.kind = HazardInfo::kWaits;
  else if (n[0] == 'v')
    info.kind = HazardInfo::kVector;
  else if (n[0] == 's' && !begins(n, "scratch_"))
    info.kind = HazardInfo::kScalar;
  info.is_call = begins(n, "s_swappc") || begins(n, "s_call");
  info.is_jump = info.is_call || begins(n, "s_setpc");
  registers(i, info.uses, info.defs);
  if (i.second != nullptr) {
    registers(*static_cast<const Inst*>(i.table), info.uses, info.defs);
    registers(*i.second, info.uses, info.defs);
  }
  return info;
}

void SgprHazards::step(const Inst& i) {
  const HazardInfo& info = i.hazard;
  if (info.kind == HazardInfo::kNothing) return;
  if (info.kind == HazardInfo::kClears) {
    salu_.reset(), valu_.reset(), vcc_ = 0;
    return;
  }
  if (info.kind == HazardInfo::kWaits) {
    const std::uint32_t mask = i.word0 & 0xFFFF;
    if ((mask >> 1 & 1) == 0) vcc_ &= ~2;
    if ((mask & 1) == 0) salu_.reset(), vcc_ &= ~1;
    if ((mask >> 9 & 7) == 0) valu_.reset();
    return;
  }
  const bool vector = info.kind == HazardInfo::kVector, scalar = !vector;
  const auto fail = [&](const char* what, int reg) {
    throw Fault(kHazard, std::string("gfx12 hazard: ") + (is_vcc(reg) ? "vcc" : "s" + std::to_string(reg)) +
                             " was written by " + what +
                             " after a vector instruction had read it, and is read without s_wait_alu: " + i.full +
                             " (clang before 20 does not insert these waits)");
  };
  if (info.is_jump) {
    if (salu_.any() || valu_.any() || vcc_ != 0) fail("an instruction before this jump", kVcc);
  }
  for (const auto& u : info.uses) {
    const std::size_t pair = static_cast<std::size_t>(u.first) >> 1 & 63;
    // A scalar instruction that reads a register waits for all that vector instructions write. LLVM takes it so where
    // any path, and not just this one, has a vector instruction that reads the pair.
    if (scalar && !is_vcc(u.first)) valu_.reset();
    if (!tracked_[pair]) {
      if (vector) tracked_.set(pair);
      continue;
    }
    if (scalar && is_vcc(u.first)) vcc_ = vcc_ & 2 ? 0 : vcc_;
    for (int k = 0; k < u.n && u.first + k < 128; ++k) {
      const auto r = static_cast<std::size_t>(u.first + k);
      if (salu_[r]) fail("a scalar instruction", u.first + k);
      if (vector && valu_[r]) fail("a vector instruction", u.first + k);
    }
    if (is_vcc(u.first) && vcc_ != 0) fail(vcc_ & 1 ? "a scalar instruction" : "a vector instruction", kVcc);
  }
  for (const auto& d : info.defs) {
    if (!tracked_[static_cast<std::size_t>(d.first) >> 1 & 63]) continue;
    if (is_vcc(d.first)) {
      vcc_ = scalar ? 1 : 2;
      continue;
    }
    for (int k = 0; k < d.n && d.first + k < 128; ++k)
      (scalar ? salu_ : valu_).set(static_cast<std::size_t>(d.first + k));
  }
  if (info.is_call) tracked_.set();
}

}  // namespace amd_sim
