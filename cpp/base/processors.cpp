#include "base/processors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/platform/processor_access.h"
#include "base/platform/processor_topology.h"

namespace zinc_rt {
namespace {

int bounded(std::size_t n, const std::optional<double>& quota) {
  const double most = std::min(static_cast<double>(n), quota.value_or(static_cast<double>(n)));
  return std::max(1, static_cast<int>(most));
}

}  // namespace

int Processors::n_usable() const {
  return bounded(ids.size(), quota);
}

int Processors::n_threads() const {
  return bounded(static_cast<std::size_t>(n_cores), quota);
}

std::string Processors::explain() const {
  return fmt::format("{} thread{}: {} usable processor{}, {} core{}, {}", n_threads(), n_threads() == 1 ? "" : "s",
                     ids.size(), ids.size() == 1 ? "" : "s", n_cores, n_cores == 1 ? "" : "s",
                     quota ? fmt::format("quota of {:.4g} processors", *quota) : "no quota");
}

Processors find_processors(const std::string& root) {
  Processors processors;
  processors.ids = usable_processors();
  processors.n_cores = count_cores(processors.ids, root);
  processors.quota = processor_quota(root);
  return processors;
}

}  // namespace zinc_rt
