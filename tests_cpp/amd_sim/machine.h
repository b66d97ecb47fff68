// The state that instructions work on: waves of 32 lanes, the LDS of a workgroup, memory by regions.
#pragma once

#include <array>
#include <bitset>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "amd_sim/isa.h"

namespace amd_sim {

constexpr int kLanes = 32;

struct Region {
  std::string name;
  std::uint64_t va = 0, size = 0;
  std::uint8_t* host = nullptr;
  bool writable = true, executable = true;
};

// GPU memory. With races on, two workgroups that no barrier orders may not touch the same 2 bytes when one writes: caches
// keep apart what is written in one word (the LLVM memory model of AMDGPU), and two tokens' codes of a value share one.
class Memory {
 public:
  void add(const Region& r);
  void remove(std::uint64_t va);
  const std::vector<Region>& regions() const { return regions_; }
  std::uint8_t* at(std::uint64_t va, std::uint64_t n, bool write, const char* what, std::uint64_t pc);
  const Region* find(std::uint64_t va) const;
  bool races = false;
  void touch(std::uint64_t va, std::uint64_t n, bool write, bool atomic, std::uint32_t group, std::uint64_t pc);
  void order() { shadow_.clear(); }  // a barrier between dispatches

 private:
  struct Touch {
    std::uint32_t writer = 0, reader = 0;  // workgroup + 1
    bool atomic = false, many = false;
  };
  std::vector<Region> regions_;  // by address
  std::size_t last_ = 0;
  std::unordered_map<std::uint64_t, Touch> shadow_;
};

struct Counts {
  std::uint64_t waves = 0, groups = 0, inst[kClasses] = {}, vopd = 0, wmma_cycles = 0;
  std::uint64_t load_bytes = 0, store_bytes = 0, smem_bytes = 0, lds_bytes = 0;
  std::uint64_t lines = 0;       // 128-byte lines that vector memory instructions touch, summed
  std::uint64_t lds_cycles = 0;  // cycles of LDS accesses by the rule of 32 banks
  // Those lines, each once: that one workgroup touches, and that several do.
  std::uint64_t own_lines = 0, shared_lines = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> touched;  // line -> the workgroup's number, or kSeveral
  static constexpr std::uint32_t kSeveral = ~0u;
  std::map<std::string, std::uint64_t> approximate, names;
  std::uint64_t total() const;
  void add(const Counts& o);
  // Counts `touched`.
  void end();
  // As if n workgroups had run, and not those that have; lines that several share stay as they are.
  void scale_to(std::uint64_t n);
};

struct Dispatch {
  std::uint64_t pgm = 0;
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0, tmpring = 0;
  std::uint64_t scratch = 0;
  std::uint32_t user[16] = {}, threads[3] = {}, groups[3] = {};
  std::uint32_t first_group = 0;  // for Memory::touch
  bool gfx11 = false;
  int vgprs() const { return static_cast<int>((rsrc1 & 63) + 1) * 8; }
  std::uint32_t lds() const { return (rsrc2 >> 15 & 511) * 512; }
};

struct Machine;
struct Group {
  const Dispatch* dispatch = nullptr;
  Machine* machine = nullptr;
  std::uint32_t id[3] = {}, number = 0;
  std::vector<std::uint8_t> lds;
  struct LdsTouch {
    std::uint32_t writer = 0, reader = 0;
    bool atomic = false, many = false;
  };
  std::vector<LdsTouch> lds_shadow;  // since the last barrier
  std::vector<std::unique_ptr<Wave>> waves;
  int ended = 0, arrived = 0;
  std::uint32_t phase = 0;
};

// hazards.cpp
class SgprHazards {
 public:
  void step(const Inst& i);

 private:
  std::bitset<64> tracked_;       // pairs that a vector instruction has read
  std::bitset<128> salu_, valu_;  // written since, and not waited for
  int vcc_ = 0;                   // the same of VCC: 1 by a scalar, 2 by a vector instruction
};

enum Counter : std::uint8_t { kLoad, kStore, kDs, kKm, kCounters };

struct Wave {
  Group* group = nullptr;
  Machine* machine = nullptr;
  Counts* counts = nullptr;
  std::uint32_t index = 0, lanes = 0;
  std::uint64_t pc = 0, next = 0;
  std::uint32_t s[128] = {};
  std::uint32_t scc = 0;
  bool done = false, signalled = false, waiting = false;
  std::uint32_t phase = 0;
  std::uint64_t steps = 0;
  std::uint64_t scratch = 0;  // of this wave
  int vgprs = 256;
  std::array<std::array<std::uint32_t, kLanes>, 256> v;
  // Results that are under way: 0 or the number of the instruction among those of its counter.
  struct Pending {
    Counter counter = kLoad;
    std::uint32_t number = 0;
  };
  Pending v_pending[256], s_pending[128];
  SgprHazards hazards;
  std::uint32_t issued[kCounters] = {}, arrived[kCounters] = {};

  std::uint32_t exec() const { return s[kExec]; }
  bool on(int lane) const { return s[kExec] >> lane & 1; }
  void wait(Counter c, std::uint32_t left);
  void pend(Counter c, bool vector, int reg, int n);
  // in_order: results of this counter come in order, so that one of them may follow another into a register.
  void check_v(const Inst& i, int reg, int n, Counter in_order = kCounters) const;
  void check_s(const Inst& i, int reg, int n) const;
  // Scalar sources and results.
  std::uint32_t get(const Inst& i, const Operand& o);
  std::uint64_t get64(const Inst& i, const Operand& o);
  void set(const Inst& i, const Operand& o, std::uint32_t value);
  void set64(const Inst& i, const Operand& o, std::uint64_t value);
};

// Runs dispatches. order: of the workgroups among each other. resident: workgroups that take turns.
struct Machine {
  Memory memory;
  std::string arch = "gfx1201";
  std::unique_ptr<Disassembler> disassembler;
  std::unordered_map<std::uint64_t, std::unique_ptr<Inst>> code;
  std::uint32_t resident = 1, quantum = 1'000'000;
  // At most so many workgroups of a dispatch run, spread over it, and its counts are scaled; 0: all run. Results are
  // those of no program then: it is for counting.
  std::uint32_t most_groups = 0;
  std::uint64_t limit = 200'000'000;  // instructions of a wave
  bool check_waits = true, check_lds = true, check_hazards = true, trace = false, shuffle = false, profile = false,
       lines = false;  // lines: count lines of memory and banks of LDS
  std::uint64_t seed = 1;
  Counts counts;

  const Inst& fetch(std::uint64_t pc);
  // Memory that is there no longer.
  void forget(std::uint64_t va, std::uint64_t bytes);
  void run(std::span<const Dispatch> dispatches, bool reverse, std::vector<Counts>* each = nullptr);
};

void run_valu(Wave& w, const Inst& i);
void bind_scalar(Inst& i);
void bind_memory(Inst& i);
void bind_lanes(Inst& i);
void bind_valu(Inst& i);

// Bits of floats.
inline float f32(std::uint64_t b) {
  const auto u = static_cast<std::uint32_t>(b);
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
inline std::uint64_t bits(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}
inline double f64(std::uint64_t b) {
  double d;
  std::memcpy(&d, &b, 8);
  return d;
}
inline std::uint64_t bits64(double d) {
  std::uint64_t b;
  std::memcpy(&b, &d, 8);
  return b;
}
float f16(std::uint64_t b);
std::uint64_t bits16(double d, bool to_zero = false);
inline float bf16(std::uint64_t b) {
  return f32((b & 0xFFFF) << 16);
}
// A source of a VALU instruction for all lanes. type: i u32, f f32, h f16, s u16, l u64, d f64, p two f16, q two u16.
void source(Wave& w, const Inst& i, const Operand& o, char type, std::uint64_t out[kLanes]);
// Source 0 through DPP: what each lane sees, and which lanes are written.
std::uint32_t through_dpp(const Wave& w, const Inst& i, std::uint64_t out[kLanes]);

}  // namespace amd_sim
