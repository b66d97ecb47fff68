#include "base/platform/processor_topology.h"

namespace zinc_rt {

int count_cores(const std::vector<int>& ids, const std::string&) {
  return static_cast<int>(ids.size());
}

std::optional<double> processor_quota(const std::string&) {
  return {};
}

}  // namespace zinc_rt
