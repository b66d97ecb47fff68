#include "amd_sim/machine.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace amd_sim {
namespace {

std::string hex(std::uint64_t v) {
  char b[32];
  std::snprintf(b, sizeof b, "0x%llx", static_cast<unsigned long long>(v));
  return b;
}

}  // namespace

void Memory::add(const Region& r) {
  regions_.insert(std::ranges::upper_bound(regions_, r.va, {}, &Region::va), r);
}
void Memory::remove(std::uint64_t va) {
  std::erase_if(regions_, [va](const Region& r) { return r.va == va; });
  last_ = 0;
}
const Region* Memory::find(std::uint64_t va) const {
  const auto after = std::ranges::upper_bound(regions_, va, {}, &Region::va);
  if (after == regions_.begin()) return nullptr;
  const Region& r = *std::prev(after);
  return va < r.va + r.size ? &r : nullptr;
}

std::uint8_t* Memory::at(std::uint64_t va, std::uint64_t n, bool write, const char* what, std::uint64_t pc) {
  const auto in = [&](const Region& r) { return va >= r.va && va + n <= r.va + r.size && va + n >= va; };
  if (last_ >= regions_.size() || !in(regions_[last_])) {
    const Region* found = find(va);
    last_ = found != nullptr && in(*found) ? static_cast<std::size_t>(found - regions_.data()) : regions_.size();
  }
  if (last_ == regions_.size()) {
    std::string near;
    for (const auto& r : regions_)
      if (va + 65536 >= r.va && va <= r.va + r.size + 65536)
        near = ", near " + r.name + "+" + hex(va - r.va) + " (size " + hex(r.size) + ")";
    throw Fault(kMemoryFault,
                std::string("GPU fault: ") + what + " of " + std::to_string(n) + " bytes at " + hex(va) +
                    " is in no region" + near + "; pc " + hex(pc),
                va);
  }
  Region& r = regions_[last_];
  if (write && !r.writable)
    throw Fault(kMemoryFault, std::string("GPU fault: ") + what + " to read-only region " + r.name + "; pc " + hex(pc),
                va);
  return r.host + (va - r.va);
}

void Memory::touch(std::uint64_t va, std::uint64_t n, bool write, bool atomic, std::uint32_t group, std::uint64_t pc) {
  if (!races) return;
  for (std::uint64_t a = va & ~1ull; a < va + n; a += 2) {
    Touch& t = shadow_[a];
    const std::uint32_t me = group + 1;
    const bool both_atomic = atomic && t.atomic;
    if (!both_atomic && ((t.writer != 0 && t.writer != me) || (write && (t.many || (t.reader != 0 && t.reader != me)))))
      throw Fault(kHazard, "race: workgroup " + std::to_string(group) + (write ? " writes " : " reads ") + hex(a) +
                               " that workgroup " +
                               std::to_string((t.writer != 0 && t.writer != me ? t.writer : t.reader) - 1) +
                               (t.writer != 0 && t.writer != me ? " wrote" : " read") +
                               " with no barrier between; pc " + hex(pc));
    if (write) {
      t.writer = me, t.atomic = atomic;
    } else {
      t.many |= t.reader != 0 && t.reader != me;
      t.reader = me;
    }
  }
}

std::uint64_t Counts::total() const {
  std::uint64_t sum = 0;
  for (const auto n : inst) sum += n;
  return sum;
}
void Counts::add(const Counts& o) {
  waves += o.waves, groups += o.groups, vopd += o.vopd, wmma_cycles += o.wmma_cycles;
  load_bytes += o.load_bytes, store_bytes += o.store_bytes, smem_bytes += o.smem_bytes, lds_bytes += o.lds_bytes,
      lines += o.lines, lds_cycles += o.lds_cycles, own_lines += o.own_lines, shared_lines += o.shared_lines;
  for (int c = 0; c < kClasses; ++c) inst[c] += o.inst[c];
  for (const auto& [name, n] : o.approximate) approximate[name] += n;
  for (const auto& [name, n] : o.names) names[name] += n;
}

void Counts::end() {
  for (const auto& [line, number] : touched) ++(number == kSeveral ? shared_lines : own_lines);
  touched.clear();
}
void Counts::scale_to(std::uint64_t n) {
  if (groups == 0 || groups == n) return;
  const auto scale = [&](std::uint64_t& count) { count = count * n / groups; };
  for (auto& count : inst) scale(count);
  for (auto* count : {&waves, &vopd, &wmma_cycles, &load_bytes, &store_bytes, &smem_bytes, &lds_bytes, &lines,
                      &lds_cycles, &own_lines})
    scale(*count);
  for (auto* by_name : {&approximate, &names})
    for (auto& [name, count] : *by_name) scale(count);
  groups = n;
}

void Wave::wait(Counter c, std::uint32_t left) {
  // Scalar loads come back in any order: only a wait for all of them tells anything.
  if (c == kKm && left != 0) return;
  if (issued[c] > left) arrived[c] = std::max(arrived[c], issued[c] - left);
}
void Wave::pend(Counter c, bool vector, int reg, int n) {
  const std::uint32_t number = ++issued[c];
  for (int k = 0; k < n; ++k) (vector ? v_pending[(reg + k) & 255] : s_pending[(reg + k) & 127]) = {c, number};
}
void Wave::check_v(const Inst& i, int reg, int n, Counter in_order) const {
  if (reg + n > vgprs)
    throw Fault(kHazard, "v" + std::to_string(reg + n - 1) + " is beyond the " + std::to_string(vgprs) +
                             " VGPRs of PGM_RSRC1: " + i.full + "; pc " + hex(i.pc));
  if (!machine->check_waits) return;
  for (int k = 0; k < n; ++k)
    if (const auto& p = v_pending[reg + k]; p.number > arrived[p.counter] && p.counter != in_order)
      throw Fault(kHazard, "missing wait: v" + std::to_string(reg + k) + " is still being loaded: " + i.full + "; pc " +
                               hex(i.pc));
}
void Wave::check_s(const Inst& i, int reg, int n) const {
  if (!machine->check_waits) return;
  for (int k = 0; k < n && reg + k < 128; ++k)
    if (const auto& p = s_pending[reg + k]; p.number > arrived[p.counter])
      throw Fault(kHazard, "missing wait: s" + std::to_string(reg + k) + " is still being loaded: " + i.full + "; pc " +
                               hex(i.pc));
}

std::uint32_t Wave::get(const Inst& i, const Operand& o) {
  switch (o.kind) {
    case Kind::imm: return static_cast<std::uint32_t>(o.imm);
    case Kind::fimm:
      return o.f > 0.159154 && o.f < 0.159156 ? 0x3E22F983u : static_cast<std::uint32_t>(bits(static_cast<float>(o.f)));
    case Kind::sgpr:
      if (o.reg == kNull) return 0;
      if (o.reg == kScc) return scc;
      check_s(i, o.reg, 1);
      return s[o.reg];
    default: throw Fault(kMalformed, "scalar operand expected: " + i.full);
  }
}
std::uint64_t Wave::get64(const Inst& i, const Operand& o) {
  if (o.kind == Kind::sgpr && o.reg != kNull && o.reg != kScc) {
    check_s(i, o.reg, 2);
    return s[o.reg] | static_cast<std::uint64_t>(s[o.reg + 1]) << 32;
  }
  if (o.kind == Kind::fimm) return bits64(o.f);
  return o.kind == Kind::imm ? o.imm : get(i, o);
}
void Wave::set(const Inst& i, const Operand& o, std::uint32_t value) {
  if (o.reg == kNull) return;
  check_s(i, o.reg, 1);
  s[o.reg] = value;
}
void Wave::set64(const Inst& i, const Operand& o, std::uint64_t value) {
  if (o.reg == kNull) return;
  check_s(i, o.reg, 2);
  s[o.reg] = static_cast<std::uint32_t>(value);
  s[o.reg + 1] = static_cast<std::uint32_t>(value >> 32);
}

const Inst& Machine::fetch(std::uint64_t pc) {
  auto& at = code[pc];
  if (at == nullptr) {
    const Region* r = memory.find(pc);
    if (r == nullptr) throw Fault(kMemoryFault, "GPU fault: instruction fetch at " + hex(pc) + " is in no region", pc);
    if (!r->executable)
      throw Fault(kMemoryFault, "GPU fault: instruction fetch at " + hex(pc) + " in memory without EXECUTABLE", pc);
    if (disassembler == nullptr) disassembler = std::make_unique<Disassembler>(arch);
    at = disassembler->at(r->host + (pc - r->va), r->va + r->size - pc, pc);
  }
  return *at;
}

void Machine::forget(std::uint64_t va, std::uint64_t bytes) {
  memory.remove(va);
  std::erase_if(code, [&](const auto& entry) { return entry.first >= va && entry.first < va + bytes; });
}

namespace {

// Registers as the command processor and the SPI leave them for a wave.
std::unique_ptr<Wave> start_wave(Machine& m, Group& g, std::uint32_t index, std::uint32_t threads, Counts* counts) {
  const Dispatch& d = *g.dispatch;
  auto w = std::make_unique<Wave>();
  w->group = &g, w->machine = &m, w->counts = counts, w->index = index;
  w->pc = d.pgm;
  w->vgprs = std::min(d.vgprs(), 256);
  for (auto& r : w->s) r = 0xBAD0BAD0;
  for (auto& r : w->v) r.fill(0xFFFBAD00);  // a NaN as f32 and as f16
  const std::uint32_t n_user = d.rsrc2 >> 1 & 31;
  for (std::uint32_t k = 0; k < n_user && k < 16; ++k) w->s[k] = d.user[k];
  std::uint32_t at = n_user;
  if (d.gfx11) {
    for (int axis = 0; axis < 3; ++axis)
      if (d.rsrc2 >> (7 + axis) & 1) w->s[at++] = g.id[axis];
  } else {
    w->s[kTtmp + 9] = g.id[0];
    w->s[kTtmp + 7] = g.id[1] | g.id[2] << 16;
  }
  w->s[kNull] = 0, w->s[kM0] = 0, w->s[kVcc] = 0, w->s[kVcc + 1] = 0, w->s[kExec + 1] = 0;
  w->lanes = std::min<std::uint32_t>(kLanes, threads - index * kLanes);
  w->s[kExec] = w->lanes == 32 ? ~0u : (1u << w->lanes) - 1;
  for (std::uint32_t lane = 0; lane < w->lanes; ++lane) {
    const std::uint32_t t = index * kLanes + lane;
    const std::uint32_t x = t % d.threads[0], y = t / d.threads[0] % d.threads[1],
                        z = t / (d.threads[0] * d.threads[1]);
    w->v[0][lane] = x | y << 10 | z << 20;
  }
  if (d.rsrc2 & 1) {  // scratch: a wave's part by its number, as if all were at once there
    const std::uint64_t wave_bytes = static_cast<std::uint64_t>(d.tmpring >> 12 & 0x3FFFF) * 256,
                        slots = d.tmpring & 0xFFF;
    w->scratch = d.scratch + wave_bytes * (slots == 0 ? 0 : (g.number * ((threads + 31) / 32) + index) % slots);
  }
  counts->waves++;
  return w;
}

// The numbers of the workgroups that run: all, or `most` of them. These are evenly spread over the first axis, on which
// the work of a causal attention grows, and over the others in an order that follows no multiple of it.
std::vector<std::uint32_t> groups_of(const Dispatch& d, std::uint32_t most) {
  const std::uint64_t n = std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2];
  std::vector<std::uint32_t> numbers;
  if (most == 0 || n <= most) {
    for (std::uint32_t g = 0; g < n; ++g) numbers.push_back(g);
    return numbers;
  }
  constexpr double kGolden = 0.6180339887498949, kOther = 0.7548776662466927;
  const auto part = [](double at, std::uint32_t of) {
    return static_cast<std::uint32_t>((at - std::floor(at)) * static_cast<double>(of));
  };
  for (std::uint32_t i = 0; i < most; ++i) {
    const std::uint32_t x = part((i + 0.5) / most, d.groups[0]), y = part(0.5 + i * kGolden, d.groups[1]),
                        z = part(0.5 + i * kOther, d.groups[2]);
    numbers.push_back(x + d.groups[0] * (y + d.groups[1] * z));
  }
  return numbers;
}

// Runs a wave until it ends, waits at a barrier or has used its turn. False when it cannot go on.
bool step_wave(Machine& m, Wave& w, std::uint32_t turn) {
  if (w.done) return false;
  if (w.waiting) {
    if (w.group->phase == w.phase) return false;
    w.waiting = w.signalled = false;
  }
  const Inst* before = nullptr;
  for (std::uint32_t n = 0; n < turn; ++n) {
    const bool follows = before != nullptr && w.pc == before->pc + before->size;
    const Inst& i = follows && before->following != nullptr ? *before->following : m.fetch(w.pc);
    if (follows) before->following = &i;
    before = &i;
    w.next = i.pc + i.size;
    if (++w.steps > m.limit)
      throw Fault(kHang, "hang: a wave ran " + std::to_string(m.limit) + " instructions; pc " + hex(w.pc));
    w.counts->inst[i.cls]++;
    if (i.second != nullptr) w.counts->vopd++;
    if (i.approximate) w.counts->approximate[i.name]++;
    if (m.profile) w.counts->names[i.name]++;
    if (m.trace)
      std::fprintf(stderr, "wg %u wave %u %06llx %s\n", w.group->number, w.index, static_cast<unsigned long long>(i.pc),
                   i.full.c_str());
    if (m.check_hazards && !w.group->dispatch->gfx11) w.hazards.step(i);
    i.run(w, i);
    w.s[kNull] = 0;
    w.pc = w.next;
    if (w.done) return true;
    if (w.waiting && w.group->phase == w.phase) return true;
    if (w.waiting) w.waiting = w.signalled = false;
  }
  return true;
}

}  // namespace

void Machine::run(std::span<const Dispatch> dispatches, bool reverse, std::vector<Counts>* each) {
  struct Job {
    const Dispatch* d;
    std::uint32_t number;
    std::size_t index;
  };
  std::vector<Counts> own(dispatches.size());
  std::vector<Job> jobs;
  for (std::size_t k = 0; k < dispatches.size(); ++k) {
    for (const std::uint32_t g : groups_of(dispatches[k], most_groups)) jobs.push_back({&dispatches[k], g, k});
  }
  std::mt19937_64 random(seed);
  if (reverse) std::reverse(jobs.begin(), jobs.end());
  if (shuffle) std::shuffle(jobs.begin(), jobs.end(), random);
  std::vector<std::unique_ptr<Group>> live;
  std::size_t at = 0;
  while (at < jobs.size() || !live.empty()) {
    while (at < jobs.size() && live.size() < resident) {
      const Job& j = jobs[at++];
      auto g = std::make_unique<Group>();
      const Dispatch& d = *j.d;
      g->dispatch = &d, g->machine = this, g->number = j.number;
      g->id[0] = j.number % d.groups[0], g->id[1] = j.number / d.groups[0] % d.groups[1],
      g->id[2] = j.number / (d.groups[0] * d.groups[1]);
      g->lds.assign(d.lds(), 0xFB);
      g->lds_shadow.resize(d.lds() / 4);
      const std::uint32_t threads = d.threads[0] * d.threads[1] * d.threads[2];
      own[j.index].groups++;
      for (std::uint32_t k = 0; k * kLanes < threads; ++k)
        g->waves.push_back(start_wave(*this, *g, k, threads, &own[j.index]));
      live.push_back(std::move(g));
    }
    bool moved = false;
    for (auto& g : live) {
      std::vector<std::size_t> turns(g->waves.size());
      for (std::size_t k = 0; k < turns.size(); ++k) turns[k] = k;
      if (reverse) std::reverse(turns.begin(), turns.end());
      if (shuffle) std::shuffle(turns.begin(), turns.end(), random);
      for (const std::size_t k : turns) moved |= step_wave(*this, *g->waves[k], shuffle ? 1 + random() % 64 : quantum);
    }
    if (!moved) throw Fault(kHang, "hang: all waves wait at a barrier that some never reach");
    std::erase_if(live, [](const auto& g) {
      return std::all_of(g->waves.begin(), g->waves.end(), [](const auto& w) { return w->done; });
    });
  }
  for (std::size_t k = 0; k < own.size(); ++k) {
    const auto& n = dispatches[k].groups;
    own[k].end();
    own[k].scale_to(std::uint64_t{n[0]} * n[1] * n[2]);
    counts.add(own[k]);
    if (each != nullptr) each->push_back(own[k]);
  }
}

float f16(std::uint64_t b) {
  const std::uint32_t sign = (b & 0x8000) << 16, e = b >> 10 & 31, m = b & 1023;
  if (e == 31) return f32(sign | 0x7F800000 | m << 13);
  if (e != 0) return f32(sign | (e + 112) << 23 | m << 13);
  const float v = static_cast<float>(m) * 0x1p-24f;
  return sign != 0 ? -v : v;
}
std::uint64_t bits16(double d, bool to_zero) {
  const std::uint64_t sign = std::signbit(d) ? 0x8000 : 0;
  if (std::isnan(d)) return sign | 0x7E00;
  const double a = std::fabs(d);
  if (std::isinf(d)) return sign | 0x7C00;
  if (a >= 65520.0 && !to_zero) return sign | 0x7C00;
  if (a >= 65504.0 && to_zero) return sign | 0x7BFF;
  int e;
  std::frexp(a, &e);
  const double ulp = std::ldexp(1.0, std::max(e - 11, -24));
  const double q = to_zero ? std::floor(a / ulp) : std::nearbyint(a / ulp), v = q * ulp;
  if (v >= 65536.0) return sign | 0x7C00;
  if (v < 0x1p-14) return sign | static_cast<std::uint64_t>(v * 0x1p24);
  std::frexp(v, &e);
  return sign | static_cast<std::uint64_t>(e + 14) << 10 | (static_cast<std::uint64_t>(std::ldexp(v, 11 - e)) & 1023);
}

}  // namespace amd_sim
