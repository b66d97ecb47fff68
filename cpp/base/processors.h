// Which processors of the machine this process may use, and how many threads it should start for them.
// Thread rule: any thread; no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zinc_rt {

struct Processors {
  // The processors in the calling thread's affinity mask, ascending. The kernel keeps the mask within the cgroup's
  // cpuset.
  std::vector<int> ids;
  // The number of physical cores among them. A processor whose siblings are unknown counts as its own core.
  int n_cores = 1;
  // The smallest quota of the cgroup and its parents (v2: cpu.max, v1: cpu.cfs_quota_us), as a number of processors
  // (2.5: two and a half processors' time).
  std::optional<double> quota;

  // How many threads can run at once without being throttled, at least 1. Rounds the quota down and leaves the fraction
  // to other threads.
  int n_usable() const;
  // How many threads to use for work that keeps a core's arithmetic units busy: one per core, because a second thread
  // on a core gains nothing there.
  int n_threads() const;
  // "2 threads: 4 processors in the affinity mask, 2 cores, quota of 2.5 processors"
  std::string explain() const;
};

// `root` is put before /proc and /sys.
Processors find_processors(const std::string& root = "");

}  // namespace zinc_rt
