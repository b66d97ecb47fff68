// Tells how many cores processors belong to, and how much of their time the process may use.
// Thread rule: any thread; no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace zinc_rt {

// Returns the number of cores to which the processors belong. A processor whose hyper-thread siblings are unknown
// counts as its own core. On macOS only cores of the fastest kind count, because a range of equal parts ends with its
// slowest thread. `root` is put before the paths /proc and /sys of Linux, for tests; other systems have no such files.
int count_cores(const std::vector<int>& ids, const std::string& root);

// Returns the smallest quota of processor time that holds for the process, as a number of processors. Empty if there is
// none. Linux has quotas (cgroups), macOS and WASI have not.
std::optional<double> processor_quota(const std::string& root);

}  // namespace zinc_rt
