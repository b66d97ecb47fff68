// The card that the tests' drivers share (kfd.cpp, drm.cpp): its memory, a sparse file that a program maps as it would
// the GPU's, and queues, each a thread that watches a doorbell and runs what a ring holds.
//
// Of the environment: ZRT_AMD_SIM_TARGET=gfx1100 (gfx1201), ZRT_AMD_SIM_ORDER=reverse, ZRT_AMD_SIM_SEED=N (workgroups
// and waves in another order), ZRT_AMD_SIM_RACES=1, ZRT_AMD_SIM_STATS=1, ZRT_AMD_SIM_VRAM=N MiB (4096);
// ZRT_AMD_SIM_GROUPS=N (of a dispatch that many run at most: steps are recorded in seconds, and have no results);
// ZRT_AMD_SIM_KFD=off (there is no compute driver), ZRT_AMD_SIM_DEAD=pm4,aql,cs,userq (queues of these kinds that run
// nothing), ZRT_AMD_SIM_USERQ=off (the module's option), old (firmware) or untold (a kernel that has them and does not
// say how many).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "amd_sim/command_processor.h"

namespace amd_sim {

std::string variable(const char* name, const char* otherwise);
// Whether queues of a kind run nothing.
bool is_dead(const std::string& kind);

inline constexpr std::uint32_t kGpuId = 4711, kCus = 64;
inline constexpr std::uint64_t kGttBytes = std::uint64_t{16} << 30;

class Card {
 public:
  static Card& get();
  std::mutex mutex;  // of everything but the files' own tables

  int memory_file() const { return memory_; }
  const std::string& arch() const { return arch_; }
  // "120001"
  std::string target_version() const;
  // Of 12.0.1, major to revision.
  std::uint32_t engine_version() const;
  std::uint64_t vram_bytes() const { return vram_bytes_; }
  std::uint64_t vram_used() const { return vram_used_; }
  // The offset in the file of so much memory, with anything in it; nullopt: there is none left.
  std::optional<std::uint64_t> take(std::uint64_t bytes, bool is_vram);
  void give_back(std::uint64_t offset, std::uint64_t bytes, bool is_vram);
  // Null: the host has no memory left.
  void* map(std::uint64_t offset, std::uint64_t bytes) const;
  // An address space, as the environment wants it to run things.
  std::unique_ptr<Machine> make_machine() const;

 private:
  Card();
  int memory_ = -1;
  std::string arch_;
  std::uint64_t next_offset_ = 0, vram_bytes_, vram_used_ = 0;
};

std::unique_ptr<CommandProcessor> make_processor(Machine& machine);
void print_counts(const CommandProcessor& processor, const Machine& machine);

// A queue that reads a ring. REQUIRES: the card's mutex is not held where it is destroyed.
class HardwareQueue {
 public:
  struct Setup {
    std::string kind;  // pm4, aql or userq
    Ring ring;
    std::atomic<std::uint64_t>* doorbell = nullptr;
    std::function<void()> before;  // each run; may throw a Fault
    std::function<void(const Fault&)> on_fault;
  };
  HardwareQueue(Machine& machine, Setup setup);
  ~HardwareQueue();

 private:
  void watch();
  std::uint64_t wptr() const;

  Machine& machine_;
  Setup setup_;
  bool is_aql_;
  // The doorbell's last number. An AQL queue's is that of the last packet, the first of which is 0.
  std::uint64_t rung_;
  std::unique_ptr<CommandProcessor> processor_;
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

}  // namespace amd_sim
