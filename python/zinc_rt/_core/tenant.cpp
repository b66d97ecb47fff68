// Binds tenants, their quotas and ledgers.
#include "zinc_rt/tenant.h"

#include <pybind11/stl.h>

#include "bindings.h"

namespace zinc_rt::python {
namespace {

// Converts a ledger to the dataclass of zinc_rt/ledger.py, which has exactly these fields.
py::object to_python(const TenantLedger& l) {
  py::dict fields;
  fields["tokens_prompted"] = l.tokens_prompted;
  fields["tokens_generated"] = l.tokens_generated;
  fields["tokens_cached"] = l.tokens_cached;
  fields["slots_admitted"] = l.slots_admitted;
  fields["slots_preempted"] = l.slots_preempted;
  fields["requests_finished"] = l.requests_finished;
  fields["requests_cancelled"] = l.requests_cancelled;
  fields["requests_failed"] = l.requests_failed;
  fields["requests_rejected"] = l.requests_rejected;
  fields["requests_too_slow"] = l.requests_too_slow;
  fields["p50_ttft_ms"] = l.p50_ttft_ms;
  fields["p99_ttft_ms"] = l.p99_ttft_ms;
  fields["p50_decode_ms"] = l.p50_decode_ms;
  fields["p99_decode_ms"] = l.p99_decode_ms;
  fields["p50_queue_ms"] = l.p50_queue_ms;
  fields["p99_queue_ms"] = l.p99_queue_ms;
  fields["kv_pages_now"] = l.kv_pages_now;
  fields["kv_pages_peak"] = l.kv_pages_peak;
  fields["slots_now"] = l.slots_now;
  fields["waiting_now"] = l.waiting_now;
  fields["prefix_hit_rate"] = l.prefix_hit_rate;
  fields["service"] = l.service;
  return py::module_::import("zinc_rt.ledger").attr("TenantLedger")(**fields);
}

}  // namespace

void bind_tenant(py::module_& m) {
  py::class_<Tenant, Held<Tenant>> tenant(m, "Tenant", "Whose work it is. Any thread.");
  tenant.def_property_readonly("name", &Tenant::name)
      .def("_quota", &Tenant::quota)
      .def("_set_quota",
           [](Tenant& self, const py::object& object) {
             const auto quota = to_quota(object);
             without_gil([&] { return self.set_quota(quota); });
           })
      .def(
          "ledger",
          [](const Tenant& self) {
            return to_python(without_gil([&]() -> Result<TenantLedger> { return self.ledger(); }));
          },
          "A zinc_rt.TenantLedger of now.")
      .def(
          "flush_prefix_cache",
          [](const Tenant& self) { return without_gil([&] { return self.flush_prefix_cache(); }); },
          "Forgets the prefixes that are cached for this tenant (its isolation group, if it is in one) and not in use "
          "now; gives how many KV pages that were.")
      .def(
          "session",
          [](const Tenant& self, std::optional<std::string> system) {
            return unwrap(self.session(system.value_or("")));
          },
          py::arg("system") = py::none(),
          "A conversation of the tenant's. system: the message that is put before those of a request which has none.");
  forbid_pickle(tenant);
}

}  // namespace zinc_rt::python
