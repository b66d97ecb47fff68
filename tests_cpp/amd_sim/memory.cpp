// Vector memory: global, flat, scratch and buffer accesses, LDS, and what goes through LDS hardware between lanes.
#include <algorithm>
#include <cmath>

#include "amd_sim/machine.h"

namespace amd_sim {
namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

// b128, u8, d16_hi_b8 ...: bytes, and how a narrow one fills its register.
struct Width {
  u32 bytes = 4;
  bool sign = false, d16 = false, high = false;
  u32 regs() const { return (bytes + 3) / 4; }
};
Width width_of(const std::string& name) {
  Width w;
  w.d16 = name.find("_d16_") != std::string::npos;
  w.high = name.find("_d16_hi_") != std::string::npos;
  const std::string t = name.substr(name.rfind('_') + 1);
  w.sign = t == "i8" || t == "i16";
  if (t.size() < 2 || t[1] < '0' || t[1] > '9') throw Fault(kMalformed, "the width is not known");
  w.bytes = static_cast<u32>(std::atoi(t.c_str() + 1)) / 8;
  return w;
}
void load(Wave& w, int reg, int lane, const std::uint8_t* from, const Width& width) {
  if (width.bytes >= 4) {
    u32 words[4];
    std::memcpy(words, from, width.bytes);
    for (u32 k = 0; k < width.regs(); ++k) w.v[static_cast<std::size_t>(reg) + k][lane] = words[k];
    return;
  }
  u32 v = 0;
  std::memcpy(&v, from, width.bytes);
  if (width.sign)
    v = width.bytes == 1 ? static_cast<u32>(static_cast<std::int8_t>(v))
                         : static_cast<u32>(static_cast<std::int16_t>(v));
  u32& at = w.v[reg][lane];
  at = !width.d16 ? v : width.high ? (at & 0xFFFF) | v << 16 : (at & 0xFFFF0000) | (v & 0xFFFF);
}
void store(const Wave& w, int reg, int lane, std::uint8_t* to, const Width& width) {
  u32 words[4];
  for (u32 k = 0; k < width.regs(); ++k)
    words[k] = w.v[static_cast<std::size_t>(reg) + k][lane] >> (width.high ? 16 : 0);
  std::memcpy(to, words, width.bytes);
}

// Read, change, write back; the old value is the result.
template <class T>
T change(const std::string& op, T old, T data, T compare) {
  if (op == "add") return old + data;
  if (op == "sub") return old - data;
  if (op == "and") return old & data;
  if (op == "or") return old | data;
  if (op == "xor") return old ^ data;
  if (op == "swap" || op == "storexchg") return data;
  if (op == "cmpswap" || op == "cmpstore") return old == compare ? data : old;
  if (op == "inc") return old >= data ? 0 : old + 1;
  if (op == "dec") return old == 0 || old > data ? data : old - 1;
  throw Fault(kMalformed, "atomic " + op + " is not known");
}
u64 atomic_op(const std::string& op, const std::string& type, u64 old, u64 data, u64 compare) {
  if (type == "f32") {
    const float x = f32(old), y = f32(data);
    if (op == "add") return bits(x + y);
    return bits(op.compare(0, 3, "max") == 0 ? std::max(x, y) : std::min(x, y));
  }
  if (op == "max" || op == "min") {
    const bool max = op == "max";
    if (type == "u32")
      return max ? std::max<u32>(static_cast<u32>(old), static_cast<u32>(data))
                 : std::min<u32>(static_cast<u32>(old), static_cast<u32>(data));
    if (type == "i32")
      return static_cast<u32>(max ? std::max(static_cast<i32>(old), static_cast<i32>(data))
                                  : std::min(static_cast<i32>(old), static_cast<i32>(data)));
    if (type == "u64") return max ? std::max(old, data) : std::min(old, data);
    return static_cast<u64>(max ? std::max(static_cast<i64>(old), static_cast<i64>(data))
                                : std::min(static_cast<i64>(old), static_cast<i64>(data)));
  }
  return type.find("64") != std::string::npos
             ? change<u64>(op, old, data, compare)
             : change<u32>(op, static_cast<u32>(old), static_cast<u32>(data), static_cast<u32>(compare));
}

// Addresses of an instruction's lanes. Operands: [result] address [data] base.
struct Lanes {  // that are switched on
  int list[kLanes], n = 0;
  const int* begin() const { return list; }
  const int* end() const { return list + n; }
  std::size_t size() const { return static_cast<std::size_t>(n); }
};
struct Access {
  Lanes lanes;
  u64 at[kLanes] = {};
  const Operand *result = nullptr, *data = nullptr;
};
Access access(Wave& w, const Inst& i, bool has_result, bool has_data) {
  Access a;
  std::size_t k = 0;
  if (has_result) a.result = &i.op.at(k++);
  const Operand& address = i.op.at(k++);
  if (has_data) a.data = &i.op.at(k++);
  const Operand* base = k < i.op.size() ? &i.op[k] : nullptr;
  const bool scratch = i.name.compare(0, 8, "scratch_") == 0;
  const bool scalar_base = base != nullptr && base->kind == Kind::sgpr && base->reg != kNull;
  const u64 s = scratch ? (scalar_base ? w.get(i, *base) : 0) : scalar_base ? w.get64(i, *base) : 0;
  const bool wide = !scratch && !scalar_base;
  if (address.kind == Kind::vgpr) w.check_v(i, address.reg, wide ? 2 : 1);
  for (int l = 0; l < kLanes; ++l) {
    if (!w.on(l)) continue;
    a.lanes.list[a.lanes.n++] = l;
    u64 v = address.kind == Kind::vgpr ? w.v[address.reg][l] : 0;
    if (wide) v |= static_cast<u64>(w.v[address.reg + 1][l]) << 32;
    a.at[l] = s + v + static_cast<u64>(static_cast<i64>(i.offset));
    if (scratch) {  // dword d of a lane lies beside that of the next lane
      const u64 d = a.at[l];
      a.at[l] = w.scratch + (d / 4 * kLanes + static_cast<u64>(l)) * 4 + d % 4;
    }
  }
  return a;
}
void count_lines(Wave& w, const Access& a, u32 bytes) {
  if (!w.machine->lines) return;
  std::set<u64> lines;
  for (const int l : a.lanes)
    for (u64 x = a.at[l] / 128; x <= (a.at[l] + bytes - 1) / 128; ++x) lines.insert(x);
  w.counts->lines += lines.size();
  for (const u64 line : lines)
    if (const auto [at, is_new] = w.counts->touched.try_emplace(line, w.group->number);
        !is_new && at->second != w.group->number)
      at->second = Counts::kSeveral;
}
u32 me(const Wave& w) {
  return w.group->dispatch->first_group + w.group->number;
}

void vload(Wave& w, const Inst& i) {
  const Width width = width_of(i.name);
  const Access a = access(w, i, true, false);
  const bool scratch = i.name[0] == 's';
  w.check_v(i, a.result->reg, static_cast<int>(width.regs()), kLoad);
  for (const int l : a.lanes) {
    if (scratch)  // not consecutive: dword by dword
      for (u32 k = 0; k < width.regs(); ++k)
        load(w, a.result->reg + static_cast<int>(k), l,
             w.machine->memory.at(a.at[l] + 4ull * kLanes * k, std::min(width.bytes, 4u), false, i.name.c_str(), i.pc),
             width.bytes < 4 ? width : Width{});
    else
      load(w, a.result->reg, l, w.machine->memory.at(a.at[l], width.bytes, false, i.name.c_str(), i.pc), width),
          w.machine->memory.touch(a.at[l], width.bytes, false, false, me(w), i.pc);
  }
  w.counts->load_bytes += width.bytes * a.lanes.size();
  count_lines(w, a, width.bytes);
  w.pend(kLoad, true, a.result->reg, static_cast<int>(width.regs()));
  if (i.name[0] == 'f') w.pend(kDs, true, 0, 0);
}
void vstore(Wave& w, const Inst& i) {
  const Width width = width_of(i.name);
  const Access a = access(w, i, false, true);
  const bool scratch = i.name[0] == 's';
  w.check_v(i, a.data->reg, static_cast<int>(width.regs()));
  for (const int l : a.lanes) {
    if (scratch)
      for (u32 k = 0; k < width.regs(); ++k)
        store(w, a.data->reg + static_cast<int>(k), l,
              w.machine->memory.at(a.at[l] + 4ull * kLanes * k, std::min(width.bytes, 4u), true, i.name.c_str(), i.pc),
              width.bytes < 4 ? width : Width{});
    else
      store(w, a.data->reg, l, w.machine->memory.at(a.at[l], width.bytes, true, i.name.c_str(), i.pc), width),
          w.machine->memory.touch(a.at[l], width.bytes, true, false, me(w), i.pc);
  }
  w.counts->store_bytes += width.bytes * a.lanes.size();
  count_lines(w, a, width.bytes);
  w.pend(kStore, true, 0, 0);
}
// global_atomic_add_u32 and others.
void atomic(Wave& w, const Inst& i) {
  const std::size_t at = i.name.find("atomic_") + 7, end = i.name.rfind('_');
  const std::string op = i.name.substr(at, end - at), type = i.name.substr(end + 1);
  const u32 bytes = type.find("64") != std::string::npos ? 8 : 4;
  const bool swap = op == "cmpswap";
  const Access a = access(w, i, i.returns, true);
  w.check_v(i, a.data->reg, static_cast<int>(bytes / 4 * (swap ? 2 : 1)));
  for (const int l : a.lanes) {
    if (a.at[l] % bytes != 0) throw Fault(kMemoryFault, "GPU fault: unaligned " + i.name + "; " + i.full);
    std::uint8_t* p = w.machine->memory.at(a.at[l], bytes, true, i.name.c_str(), i.pc);
    w.machine->memory.touch(a.at[l], bytes, true, true, me(w), i.pc);
    u64 old = 0, data = 0, compare = 0;
    std::memcpy(&old, p, bytes);
    const int r = a.data->reg;
    data = w.v[r][l] | (bytes == 8 ? static_cast<u64>(w.v[r + 1][l]) << 32 : 0);
    if (swap) compare = bytes == 8 ? w.v[r + 2][l] | static_cast<u64>(w.v[r + 3][l]) << 32 : w.v[r + 1][l];
    const u64 now = atomic_op(op, type, old, data, compare);
    std::memcpy(p, &now, bytes);
    if (a.result != nullptr) {
      w.v[a.result->reg][l] = static_cast<u32>(old);
      if (bytes == 8) w.v[a.result->reg + 1][l] = static_cast<u32>(old >> 32);
    }
  }
  w.counts->store_bytes += bytes * a.lanes.size();
  count_lines(w, a, bytes);
  if (a.result != nullptr)
    w.pend(kLoad, true, a.result->reg, static_cast<int>(bytes / 4));
  else
    w.pend(kStore, true, 0, 0);
}
// Buffers without stride. buffer_load_b32 result, address, resource, scalar offset.
void buffer(Wave& w, const Inst& i) {
  const bool is_store = i.name.find("store") != std::string::npos;
  const Width width = width_of(i.name);
  const Operand &data = i.op.at(0), &address = i.op.at(1), &resource = i.op.at(2);
  w.check_s(i, resource.reg, 4);
  if (w.s[resource.reg + 1] >> 16 & 0x3FFF)
    throw Fault(kMalformed, "buffers with a stride are not supported: " + i.full);
  const u64 base = w.s[resource.reg] | (static_cast<u64>(w.s[resource.reg + 1]) & 0xFFFF) << 32,
            records = w.s[resource.reg + 2];
  const u64 s = i.op.size() > 3 ? w.get(i, i.op[3]) : 0;
  w.check_v(i, data.reg, static_cast<int>(width.regs()));
  for (int l = 0; l < kLanes; ++l) {
    if (!w.on(l)) continue;
    const u64 off = (i.offen ? w.v[address.reg][l] : 0) + static_cast<u64>(i.offset);
    if (off + width.bytes > records) {  // out of the buffer: zero, or dropped
      if (!is_store)
        for (u32 k = 0; k < width.regs(); ++k) w.v[data.reg + k][l] = 0;
      continue;
    }
    std::uint8_t* p = w.machine->memory.at(base + s + off, width.bytes, is_store, i.name.c_str(), i.pc);
    is_store ? store(w, data.reg, l, p, width) : load(w, data.reg, l, p, width);
    (is_store ? w.counts->store_bytes : w.counts->load_bytes) += width.bytes;
  }
  is_store ? w.pend(kStore, true, 0, 0) : w.pend(kLoad, true, data.reg, static_cast<int>(width.regs()));
}

// ---- LDS
std::uint8_t* lds(Wave& w, const Inst& i, u64 at, u32 bytes, bool write, bool is_atomic) {
  Group& g = *w.group;
  if (at + bytes > g.lds.size())
    throw Fault(kMemoryFault, "LDS fault: " + i.full + " at " + std::to_string(at) + ", the dispatch has " +
                                  std::to_string(g.lds.size()) + " bytes of LDS");
  if (at % std::min(bytes, 4u) != 0)
    throw Fault(kMemoryFault, "LDS fault: unaligned " + i.full + " at " + std::to_string(at));
  if (w.machine->check_lds)
    for (u64 k = at / 4; k <= (at + bytes - 1) / 4; ++k) {
      auto& t = g.lds_shadow[k];
      const u32 self = w.index + 1;
      const bool both = is_atomic && t.atomic;
      if (!both && ((t.writer != 0 && t.writer != self) || (write && (t.many || (t.reader != 0 && t.reader != self)))))
        throw Fault(kHazard, "LDS race: wave " + std::to_string(w.index) + (write ? " writes" : " reads") +
                                 " bytes at " + std::to_string(k * 4) + " that wave " +
                                 std::to_string((t.writer != 0 && t.writer != self ? t.writer : t.reader) - 1) +
                                 " used since the last barrier: " + i.full);
      if (write)
        t.writer = self, t.atomic = is_atomic;
      else
        t.many |= t.reader != 0 && t.reader != self, t.reader = self;
    }
  w.counts->lds_bytes += bytes;
  return g.lds.data() + at;
}
// 32 banks of 4 bytes: as many cycles as different words of one bank are asked for.
void count_banks(Wave& w, const std::vector<u64>& words) {
  if (!w.machine->lines) return;
  std::map<u64, std::set<u64>> banks;
  for (const u64 x : words) banks[x % 32].insert(x);
  std::size_t most = 1;
  for (const auto& [b, set] : banks) most = std::max(most, set.size());
  w.counts->lds_cycles += most;
}
void ds_access(Wave& w, const Inst& i) {
  const bool is_store = i.name.find("store") != std::string::npos, two = i.name.find("2addr") != std::string::npos;
  const Width width = width_of(i.name);
  const u32 unit = width.bytes * (i.name.find("stride64") != std::string::npos ? 64 : 1);
  const Operand &address = i.op.at(is_store ? 0 : 1), &first = i.op.at(is_store ? 1 : 0);
  w.check_v(i, address.reg, 1);
  w.check_v(i, first.reg, static_cast<int>(width.regs()) * (two && !is_store ? 2 : 1));
  std::vector<u64> words;
  for (int l = 0; l < kLanes; ++l) {
    if (!w.on(l)) continue;
    const u32 base = w.v[address.reg][l];  // the first part may be loaded over it
    for (int part = 0; part < (two ? 2 : 1); ++part) {
      // Addresses wrap: a base may be negative.
      const u32 offset = two ? static_cast<u32>(part == 0 ? i.offset0 : i.offset1) * unit : static_cast<u32>(i.offset);
      const u64 at = base + offset;
      std::uint8_t* p = lds(w, i, at, width.bytes, is_store, false);
      const int reg = part == 0 ? first.reg : is_store ? i.op.at(2).reg : first.reg + static_cast<int>(width.regs());
      is_store ? store(w, reg, l, p, width) : load(w, reg, l, p, width);
      for (u32 k = 0; k < width.regs(); ++k) words.push_back(at / 4 + k);
    }
  }
  count_banks(w, words);
  w.pend(kDs, true, is_store ? 0 : first.reg, is_store ? 0 : static_cast<int>(width.regs()) * (two ? 2 : 1));
}
void ds_atomic(Wave& w, const Inst& i) {
  const bool rtn = i.name.find("_rtn_") != std::string::npos;
  const std::size_t at = 3, end = rtn ? i.name.find("_rtn_") : i.name.rfind('_');
  const std::string op = i.name.substr(at, end - at), type = i.name.substr(i.name.rfind('_') + 1);
  const u32 bytes = type.find("64") != std::string::npos ? 8 : 4;
  const std::size_t k = rtn ? 1 : 0;
  const Operand &address = i.op.at(k), &data = i.op.at(k + 1);
  w.check_v(i, address.reg, 1), w.check_v(i, data.reg, static_cast<int>(bytes / 4));
  for (int l = 0; l < kLanes; ++l) {
    if (!w.on(l)) continue;
    std::uint8_t* p = lds(w, i, w.v[address.reg][l] + static_cast<u32>(i.offset), bytes, true, true);
    u64 old = 0;
    std::memcpy(&old, p, bytes);
    const auto value = [&](const Operand& o) {
      return w.v[o.reg][l] | (bytes == 8 ? static_cast<u64>(w.v[o.reg + 1][l]) << 32 : 0);
    };
    const u64 now = atomic_op(op, type, old, value(data), op == "cmpstore" ? value(i.op.at(k + 2)) : 0);
    std::memcpy(p, &now, bytes);
    if (rtn) {
      w.v[i.op[0].reg][l] = static_cast<u32>(old);
      if (bytes == 8) w.v[i.op[0].reg + 1][l] = static_cast<u32>(old >> 32);
    }
  }
  w.counts->lds_cycles++;
  w.pend(kDs, true, rtn ? i.op[0].reg : 0, rtn ? static_cast<int>(bytes / 4) : 0);
}
// Between lanes: bpermute pulls, permute pushes, swizzle by a pattern.
void ds_lanes(Wave& w, const Inst& i) {
  const Operand& to = i.op.at(0);
  std::array<u32, kLanes> r{};
  if (i.name == "ds_swizzle_b32") {
    const Operand& from = i.op.at(1);
    w.check_v(i, from.reg, 1);
    const u32 o = i.word0 & 0xFFFF;
    for (int l = 0; l < kLanes; ++l) {
      int s;
      if ((o & 0xE000) == 0xE000 || (o & 0xE000) == 0xC000)
        throw Fault(kMalformed, "this swizzle is not supported: " + i.full);
      if (o & 0x8000)
        s = (l & ~3) | static_cast<int>(o >> (2 * (l & 3)) & 3);
      else
        s = static_cast<int>(((static_cast<u32>(l) & (o & 31)) | (o >> 5 & 31)) ^ (o >> 10 & 31));
      r[l] = w.on(s) ? w.v[from.reg][s] : 0;
    }
  } else {
    const Operand &address = i.op.at(1), &from = i.op.at(2);
    w.check_v(i, address.reg, 1), w.check_v(i, from.reg, 1);
    for (int l = 0; l < kLanes; ++l) {
      const int other = static_cast<int>((w.v[address.reg][l] + static_cast<u32>(i.offset)) / 4 % kLanes);
      if (i.name == "ds_bpermute_b32")
        r[l] = w.on(other) ? w.v[from.reg][other] : 0;
      else if (w.on(l))
        r[other] = w.v[from.reg][l];
    }
  }
  w.check_v(i, to.reg, 1);
  for (int l = 0; l < kLanes; ++l)
    if (w.on(l)) w.v[to.reg][l] = r[l];
  w.counts->lds_cycles++;
  w.pend(kDs, true, to.reg, 1);
}

void cache(Wave& w, const Inst& i) {  // caches are not modelled; their counters are
  if (i.name == "global_inv") w.pend(kLoad, true, 0, 0);
  if (i.name == "global_wb" || i.name == "global_wbinv") w.pend(kStore, true, 0, 0);
}

}  // namespace

void bind_memory(Inst& i) {
  const std::string& n = i.name;
  const auto has = [&n](const char* s) { return n.find(s) != std::string::npos; };
  if (n == "global_inv" || n == "global_wb" || n == "global_wbinv" || n == "buffer_gl0_inv" || n == "buffer_gl1_inv") {
    i.run = cache, i.cls = kOther;
  } else if (n.compare(0, 3, "ds_") == 0) {
    i.cls = kLds;
    if (has("bpermute") || has("ds_permute") || has("swizzle"))
      i.run = ds_lanes;
    else if ((has("ds_load") || has("ds_store_") || has("ds_store_2addr")) && !has("tr_") && !has("addtid"))
      i.run = ds_access;
    else
      i.run = ds_atomic;
  } else if (has("load_tr") || has("_lds") || has("block")) {
    return;
  } else if (n.compare(0, 7, "buffer_") == 0) {
    if (has("_load_") || has("_store_")) i.run = buffer, i.cls = has("_store_") ? kVstore : kVload;
  } else if (has("_atomic_")) {
    i.run = atomic, i.cls = kVstore;
  } else if (has("_load_")) {
    i.run = vload, i.cls = kVload;
  } else if (has("_store_")) {
    i.run = vstore, i.cls = kVstore;
  }
}

}  // namespace amd_sim
