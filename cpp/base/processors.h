// Finds which processors of the machine this process may use, and how many threads it should start for them.
// Thread rule: any thread; no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zinc_rt {

struct Processors {
  // Contains the processors in the calling thread's affinity mask, ascending. The kernel restricts the mask to the
  // cgroup's cpuset.
  std::vector<int> ids;
  // Number of physical cores to which the usable processors belong. A processor whose hyper-thread siblings are unknown
  // counts as its own core.
  int n_cores = 1;
  // The smallest CPU quota of the cgroup and its parents (v2: cpu.max, v1: cpu.cfs_quota_us), as a number of
  // processors. For example, 2.5 means the time of two and a half processors. Empty if there is no quota.
  std::optional<double> quota;

  // Returns how many threads can run at once without being throttled, at least 1. The quota is rounded down, so that
  // the fraction remains for other threads of the process.
  int n_usable() const;
  // Returns how many threads to use for work that keeps a core's arithmetic units busy: one per core, because a second
  // thread on a core gains nothing there.
  int n_threads() const;
  // Returns the facts behind n_threads() for messages, such as "2 threads: 4 usable processors, 2 cores,
  // quota of 2.5 processors".
  std::string explain() const;
};

// Reads the facts from the system. `root` is put before the paths /proc and /sys, for tests.
Processors find_processors(const std::string& root = "");

}  // namespace zinc_rt
