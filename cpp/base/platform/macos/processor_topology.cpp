#include "base/platform/processor_topology.h"

#include <algorithm>

#include "base/platform/macos/system_number.h"

namespace zinc_rt {

int count_cores(const std::vector<int>& ids, const std::string&) {
  const auto fast = system_number("hw.perflevel0.physicalcpu");
  const auto cores = fast > 0 ? fast : system_number("hw.physicalcpu");
  return static_cast<int>(std::clamp<std::uint64_t>(cores, 1, std::max<std::size_t>(1, ids.size())));
}

std::optional<double> processor_quota(const std::string&) {
  return {};
}

}  // namespace zinc_rt
