// What of the machine's processors this process may use, and how many threads follow from it.
// Thread rule: any thread; nothing is kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zinc_rt {

struct Processors {
  // Those of the calling thread's affinity mask, ascending. The kernel keeps the mask within the cgroup's cpuset.
  std::vector<int> ids;
  // Physical cores among them. A processor whose siblings the machine does not tell is a core of its own.
  int n_cores = 1;
  // The least quota of the cgroup and those above it (v2: cpu.max, v1: cpu.cfs_quota_us), in processors' worth of time.
  std::optional<double> quota;

  // Threads that run at once without being throttled: at least 1. A quota's fraction is left to other threads.
  int n_usable() const;
  // Threads for work that keeps a core's units busy, where a core's second processor gains nothing.
  int n_threads() const;
  // "2 threads: 4 processors in the affinity mask, 2 cores, quota of 2.5 processors"
  std::string explain() const;
};

// `root` stands before /proc and /sys.
Processors find_processors(const std::string& root = "");

// Whether `test` returns true in a process of its own, which may die by it: for instructions that the processor names
// and a hypervisor may still refuse. `test` may call nothing but instructions: other threads may hold any lock.
bool survives(bool (*test)());
// Asks the system for the tile registers of AMX, for all threads of this process and its children. False: not given.
bool allow_tile_registers();

}  // namespace zinc_rt
