// A workgroup whose instructions are given as text: for tests of the emulator, which so need neither compiler nor LLVM.
#pragma once

#include <algorithm>
#include <random>

#include "amd_sim/machine.h"

namespace amd_sim {

// One wave of 32 lanes that runs single instructions.
class Bench {
 public:
  explicit Bench(const char* arch = "gfx1201") {
    machine.arch = arch;
    dispatch.gfx11 = machine.arch.starts_with("gfx11");
    group.dispatch = &dispatch;
    group.machine = &machine;
    group.lds.resize(1024);
    group.lds_shadow.resize(256);
    wave.group = &group;
    wave.machine = &machine;
    wave.counts = &counts;
    wave.s[kExec] = ~0u;
    for (auto& reg : wave.v) reg.fill(0);
  }
  void run(const std::string& text) {
    const auto inst = parse(text, 0, 4, 0);
    bind(*inst);
    inst->run(wave, *inst);
  }
  // Edges of every type, then what is drawn.
  void fill(int reg, std::uint32_t seed) {
    static constexpr std::uint32_t kEdges[] = {0,          1,          2,          31,         32,         0x7F,
                                               0x80,       0xFF,       0x7FFF,     0x8000,     0xFFFF,     0x3C00,
                                               0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x40490FDB};
    std::mt19937 rng(seed);
    for (int lane = 0; lane < kLanes; ++lane)
      wave.v[reg][lane] = rng() % 3 == 0 ? kEdges[rng() % std::size(kEdges)] : static_cast<std::uint32_t>(rng());
  }
  // Floats of a usual size.
  void fill_floats(int reg, std::uint32_t seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<float> draw(-64.0f, 64.0f);
    for (int lane = 0; lane < kLanes; ++lane) wave.v[reg][lane] = static_cast<std::uint32_t>(bits(draw(rng)));
  }

  Machine machine;
  Dispatch dispatch;
  Group group;
  Counts counts;
  Wave wave{};
};

// A kernel of one instruction a line at kCode, with memory at kData; runs `groups` workgroups of `threads`.
class Program {
 public:
  static constexpr std::uint64_t kCode = 0x10000, kData = 0x20000, kBytes = 4096;
  explicit Program(const std::vector<std::string>& lines) {
    machine.memory.add({"code", kCode, kBytes, code_.data(), false, true});
    machine.memory.add({"data", kData, kBytes, data.data(), true, false});
    std::uint64_t pc = kCode;
    for (const auto& line : lines) {
      // The number of a wait or a branch is read from the encoding.
      const auto number = line.find(" #");
      const std::uint32_t word = number == std::string::npos
                                     ? 0
                                     : static_cast<std::uint32_t>(std::strtol(line.c_str() + number + 2, nullptr, 0));
      auto inst = parse(line.substr(0, number), pc, 4, word & 0xFFFF);
      bind(*inst);
      machine.code[pc] = std::move(inst);
      pc += 4;
    }
    dispatch.pgm = kCode;
    dispatch.rsrc1 = 3;  // 32 VGPRs
    dispatch.rsrc2 = 2 << 1 | 1 << 15;
    dispatch.user[0] = kData;
    dispatch.threads[0] = kLanes, dispatch.threads[1] = dispatch.threads[2] = 1;
    dispatch.groups[0] = dispatch.groups[1] = dispatch.groups[2] = 1;
  }
  // The text of the fault; empty: there was none.
  std::string run(std::uint32_t groups = 1, std::uint32_t threads = kLanes) {
    dispatch.groups[0] = groups, dispatch.threads[0] = threads;
    try {
      machine.run(std::span(&dispatch, 1), false);
    } catch (const Fault& fault) {
      return fault.what();
    }
    return {};
  }
  std::uint32_t word(std::size_t i) const {
    std::uint32_t value;
    std::memcpy(&value, data.data() + 4 * i, 4);
    return value;
  }

  Machine machine;
  Dispatch dispatch;
  std::array<std::uint8_t, kBytes> data{};

 private:
  std::array<std::uint8_t, kBytes> code_{};
};

}  // namespace amd_sim
