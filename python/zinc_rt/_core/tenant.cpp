// Tenants, their quotas and ledgers.
#include "zinc_rt/tenant.h"

#include <pybind11/stl.h>

#include "bindings.h"

namespace zinc_rt::python {
namespace {

// Makes the dataclass of zinc_rt/ledger.py, which has exactly these fields.
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

TenantQuota make_quota(const py::kwargs& kwargs) {
  TenantQuota q;
  Keywords keywords(kwargs);
  keywords.take("max_concurrent_slots", q.max_concurrent_slots);
  keywords.take("max_kv_pages", q.max_kv_pages);
  keywords.take("reserved_kv_pages", q.reserved_kv_pages);
  keywords.take("max_context_tokens", q.max_context_tokens);
  keywords.take("decode_tokens_per_s", q.decode_tokens_per_s);
  keywords.take("prefill_tokens_per_s", q.prefill_tokens_per_s);
  keywords.take("weight", q.weight);
  keywords.take("qos_class", q.qos_class);
  keywords.take("isolation_group", q.isolation_group);
  keywords.check_all_taken();
  return q;
}

}  // namespace

void bind_tenant(py::module_& m) {
  py::class_<TenantQuota>(m, "TenantQuota", "What a tenant may use.")
      .def(py::init(&make_quota))
      .def_readwrite("max_concurrent_slots", &TenantQuota::max_concurrent_slots)
      .def_readwrite("max_kv_pages", &TenantQuota::max_kv_pages)
      .def_readwrite("reserved_kv_pages", &TenantQuota::reserved_kv_pages)
      .def_readwrite("max_context_tokens", &TenantQuota::max_context_tokens)
      .def_readwrite("decode_tokens_per_s", &TenantQuota::decode_tokens_per_s)
      .def_readwrite("prefill_tokens_per_s", &TenantQuota::prefill_tokens_per_s)
      .def_readwrite("weight", &TenantQuota::weight)
      .def_readwrite("qos_class", &TenantQuota::qos_class)
      .def_property(
          "isolation_group",
          [](const TenantQuota& q) {
            return q.isolation_group.empty() ? std::nullopt : std::optional(q.isolation_group);
          },
          [](TenantQuota& q, std::optional<std::string> group) { q.isolation_group = group.value_or(""); });
  py::class_<Tenant, Held<Tenant>> tenant(m, "Tenant", "Whose work it is. Any thread.");
  tenant.def_property_readonly("name", &Tenant::name)
      .def_property("quota", &Tenant::quota,
                    [](Tenant& self, const TenantQuota& quota) { without_gil([&] { return self.set_quota(quota); }); })
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
          py::arg("system") = py::none());
  forbid_pickle(tenant);
}

}  // namespace zinc_rt::python
