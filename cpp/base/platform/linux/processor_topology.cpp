#include "base/platform/processor_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>

#include "base/read_number.h"

namespace zinc_rt {
namespace {

// Returns the number, or 0 if the text is not a number or means "no limit" ("max", "-1").
double to_number(const std::string& text) {
  std::uint64_t value = 0;
  return read_number(text, value) ? static_cast<double>(value) : 0;
}

// Returns quota / period of one cgroup folder. Returns nullopt if the cgroup has no limit or the file does not exist.
std::optional<double> quota_of(const std::string& folder, bool v2) {
  std::string quota, period;
  if (v2) {
    std::ifstream(folder + "/cpu.max") >> quota >> period;
  } else {
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  }
  const double q = to_number(quota), p = to_number(period);
  if (q == 0 || p == 0) return {};
  return q / p;
}

}  // namespace

int count_cores(const std::vector<int>& ids, const std::string& root) {
  std::set<std::string> cores;  // a core is identified by the text that lists its processors
  for (const int id : ids) {
    std::ifstream file(fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", root, id));
    std::string siblings;
    if (!std::getline(file, siblings) || siblings.empty()) siblings = fmt::format("only {}", id);
    cores.insert(std::move(siblings));
  }
  return static_cast<int>(cores.size());
}

// Returns the smallest quota of the process's cgroup and of the groups above it. A line of /proc/self/cgroup is
// "id:controllers:path"; a line with id 0 and no controllers is v2. In a container the path may be the one on the host,
// while the container's mount shows only its last folders. So each folder above the path is read too, and folders that
// do not exist are skipped.
std::optional<double> processor_quota(const std::string& root) {
  std::optional<double> least;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string mount = root + (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    for (std::string path = line.substr(second + 1);;) {
      if (const auto quota = quota_of(mount + path, v2)) least = std::min(least.value_or(*quota), *quota);
      if (path.empty()) break;
      path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
    }
  }
  return least;
}

}  // namespace zinc_rt
