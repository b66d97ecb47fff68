// Binds the rule by which the engine chooses a replica for a request, for routers that are written in Python.
#include "sched/placement.h"

#include <pybind11/stl.h>

#include "bindings.h"

namespace zinc_rt::python {
namespace {

std::uint32_t choose_replica(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& replicas, std::uint64_t key) {
  if (replicas.empty()) throw py::value_error("replicas is empty; at least one is wanted");
  std::vector<sched::ReplicaLoad> loads;
  for (const auto& [cached, backlog] : replicas) loads.push_back({cached, backlog});
  return sched::choose_replica(loads, key);
}

std::uint64_t placement_key(const py::bytes& tenant, const py::bytes& cache_salt, const py::bytes& prompt) {
  const std::string_view bytes(prompt);
  return sched::placement_key(std::string_view(tenant), std::string_view(cache_salt), std::as_bytes(std::span(bytes)));
}

}  // namespace

void bind_placement(py::module_& m) {
  m.def("choose_replica", &choose_replica, py::arg("replicas"), py::arg("key"));
  m.def("placement_key", &placement_key, py::arg("tenant"), py::arg("cache_salt"), py::arg("prompt"));
}

}  // namespace zinc_rt::python
