#include <pybind11/stl.h>

#include "bindings.h"
#include "zinc_rt/tenant.h"

namespace zinc_rt::python {
namespace {

Request make_request(const py::object& prompt, const py::object& messages, const py::object& token_ids,
                     const py::kwargs& kwargs) {
  Request r;
  if (!prompt.is_none()) r.prompt = prompt.cast<std::string>();
  if (!messages.is_none()) r.messages = to_json(messages);
  if (!token_ids.is_none()) r.token_ids = token_ids.cast<std::vector<std::int32_t>>();
  for (const auto& [key, value] : kwargs) {
    const auto name = key.cast<std::string>();
    const auto take = [&](const char* wanted, auto& field) {
      if (name != wanted) return false;
      field = value.cast<std::remove_cvref_t<decltype(field)>>();
      return true;
    };
    if (take("max_tokens", r.max_tokens) || take("temperature", r.temperature) || take("top_k", r.top_k) ||
        take("top_p", r.top_p) || take("min_p", r.min_p) || take("repetition_penalty", r.repetition_penalty) ||
        take("presence_penalty", r.presence_penalty) || take("frequency_penalty", r.frequency_penalty) ||
        take("stop_token_ids", r.stop_token_ids) || take("ignore_eos", r.ignore_eos) || take("logprobs", r.logprobs) ||
        take("return_logits_hash", r.return_logits_hash))
      continue;
    if (name == "seed") {
      if (!value.is_none()) r.seed = value.cast<std::uint64_t>();
    } else if (name == "deadline_ms") {
      if (!value.is_none()) r.deadline_ms = value.cast<double>();
    } else if (name == "stop") {
      if (py::isinstance<py::str>(value))
        r.stop = {value.cast<std::string>()};
      else if (!value.is_none())
        r.stop = value.cast<std::vector<std::string>>();
    } else if (name == "n") {
      if (const auto n = value.cast<int>(); n != 1)
        raise({StatusCode::kUnavailable,
               "[request] n is " + std::to_string(n) + "; this version generates 1 completion a call", 0});
    } else {
      throw py::type_error("unexpected keyword argument '" + name + "'");
    }
  }
  return r;
}

Stream open_stream(const Session& self, const py::object& prompt, const py::object& messages,
                   const py::object& token_ids, const py::kwargs& kwargs) {
  const Request request = make_request(prompt, messages, token_ids, kwargs);
  auto stream = [&] {
    const py::gil_scoped_release release;
    return self.stream(request);
  }();
  return unwrap(std::move(stream));
}

std::optional<StreamEvent> next_event(Stream& stream) {
  auto event = [&] {
    const py::gil_scoped_release release;
    return stream.next();
  }();
  return unwrap(std::move(event));
}

Completion generate(const Session& self, const py::object& prompt, const py::object& messages,
                    const py::object& token_ids, const py::kwargs& kwargs) {
  auto stream = open_stream(self, prompt, messages, token_ids, kwargs);
  while (next_event(stream))
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  return stream.completion();
}

// The dataclass of zinc_rt/ledger.py, which has just these fields.
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

void bind_session(py::module_& m) {
  py::class_<TokenLogprob>(m, "TokenLogprob")
      .def_readonly("token_id", &TokenLogprob::token_id)
      .def_readonly("logprob", &TokenLogprob::logprob)
      .def_readonly("top", &TokenLogprob::top);
  py::class_<Usage>(m, "Usage")
      .def_readonly("prompt_tokens", &Usage::prompt_tokens)
      .def_readonly("completion_tokens", &Usage::completion_tokens)
      .def_readonly("total_tokens", &Usage::total_tokens)
      .def_readonly("cached_tokens", &Usage::cached_tokens);
  py::class_<Timings>(m, "Timings")
      .def_readonly("prefill_ms", &Timings::prefill_ms)
      .def_readonly("decode_ms", &Timings::decode_ms)
      .def_readonly("prefill_tokens_per_s", &Timings::prefill_tokens_per_s)
      .def_readonly("decode_tokens_per_s", &Timings::decode_tokens_per_s)
      .def_readonly("clamps", &Timings::clamps);
  py::class_<Completion>(m, "Completion", "What a generation gave.")
      .def_readonly("text", &Completion::text)
      .def_readonly("token_ids", &Completion::token_ids)
      .def_readonly("finish_reason", &Completion::finish_reason)
      .def_readonly("logprobs", &Completion::logprobs)
      .def_readonly("logits_hashes", &Completion::logits_hashes)
      .def_readonly("seed", &Completion::seed)
      .def_readonly("usage", &Completion::usage)
      .def_readonly("timings", &Completion::timings)
      .def("__repr__", [](const Completion& c) {
        return py::str("Completion(text={!r}, finish_reason={!r})").format(c.text, c.finish_reason);
      });
  py::class_<StreamEvent>(m, "StreamEvent")
      .def_property_readonly("token_id",
                             [](const StreamEvent& e) { return e.is_token ? std::optional(e.token_id) : std::nullopt; })
      .def_readonly("text", &StreamEvent::text)
      .def_readonly("preempted", &StreamEvent::preempted);

  py::class_<Stream> stream(m, "Stream",
                            "A generation under way: iterate for its events. One thread at a time; cancel() from any.");
  stream.def("__iter__", [](py::object self) { return self; })
      .def("__next__",
           [](Stream& self) {
             auto event = next_event(self);
             if (!event) throw py::stop_iteration();
             return *event;
           })
      .def("cancel", &Stream::cancel, "Ends the generation at its next event; finish_reason becomes cancelled.")
      .def_property_readonly("completion", &Stream::completion, "What was generated so far, or in all.");
  forbid_pickle(stream);

  py::class_<Session> session(m, "Session", "A conversation of one tenant. Any thread.");
  session
      .def("generate", &generate, py::arg("prompt") = py::none(), py::arg("messages") = py::none(),
           py::arg("token_ids") = py::none(), "Generates and gives the whole Completion.")
      .def("stream", &open_stream, py::arg("prompt") = py::none(), py::arg("messages") = py::none(),
           py::arg("token_ids") = py::none(), "Generates as an iterator of StreamEvent.");
  forbid_pickle(session);

  py::class_<TenantQuota>(m, "TenantQuota", "What a tenant may use.")
      .def(py::init([](std::uint32_t slots, std::uint32_t pages, std::uint32_t context, double decode, double prefill,
                       std::string qos, std::optional<std::string> group) {
             return TenantQuota{slots, pages, context, decode, prefill, std::move(qos), group.value_or("")};
           }),
           py::kw_only(), py::arg("max_concurrent_slots") = 4, py::arg("max_kv_pages") = 4096,
           py::arg("max_context_tokens") = 128000, py::arg("decode_tokens_per_s") = 1000.0,
           py::arg("prefill_tokens_per_s") = 100000.0, py::arg("qos_class") = "standard",
           py::arg("isolation_group") = py::none())
      .def_readwrite("max_concurrent_slots", &TenantQuota::max_concurrent_slots)
      .def_readwrite("max_kv_pages", &TenantQuota::max_kv_pages)
      .def_readwrite("max_context_tokens", &TenantQuota::max_context_tokens)
      .def_readwrite("decode_tokens_per_s", &TenantQuota::decode_tokens_per_s)
      .def_readwrite("prefill_tokens_per_s", &TenantQuota::prefill_tokens_per_s)
      .def_readwrite("qos_class", &TenantQuota::qos_class)
      .def_property(
          "isolation_group",
          [](const TenantQuota& q) {
            return q.isolation_group.empty() ? std::nullopt : std::optional(q.isolation_group);
          },
          [](TenantQuota& q, std::optional<std::string> group) { q.isolation_group = group.value_or(""); });
  py::class_<Tenant> tenant(m, "Tenant", "Whose work it is. Any thread.");
  tenant.def_property_readonly("name", &Tenant::name)
      .def_property("quota", &Tenant::quota,
                    [](Tenant& self, const TenantQuota& quota) { unwrap(self.set_quota(quota)); })
      .def(
          "ledger", [](const Tenant& self) { return to_python(self.ledger()); }, "A zinc_rt.TenantLedger of now.")
      .def(
          "session",
          [](const Tenant& self, std::optional<std::string> system) {
            return unwrap(self.session(system.value_or("")));
          },
          py::arg("system") = py::none());
  forbid_pickle(tenant);
}

}  // namespace zinc_rt::python
