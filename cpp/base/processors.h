// Which processors of the machine this process may use, and how many threads follow from that.
// Thread rule: any thread; no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zinc_rt {

struct Processors {
  // The processors of the calling thread's affinity mask, ascending. The kernel keeps the mask within the cgroup's
  // cpuset.
  std::vector<int> ids;
  // How many physical cores they are. A processor whose siblings are not known counts as a core of its own.
  int n_cores = 1;
  // The least quota of the cgroup and those above it (v2: cpu.max, v1: cpu.cfs_quota_us), in processors' worth of time.
  std::optional<double> quota;

  // How many threads can run at once without being throttled: at least 1. A fraction of the quota is left to other
  // threads.
  int n_usable() const;
  // How many threads to use for work that keeps a core's arithmetic units busy, where a core's second processor adds
  // nothing.
  int n_threads() const;
  // "2 threads: 4 processors in the affinity mask, 2 cores, quota of 2.5 processors"
  std::string explain() const;
};

// `root` is put before /proc and /sys.
Processors find_processors(const std::string& root = "");

}  // namespace zinc_rt
