#include "values.h"

#include <pybind11/stl.h>

namespace zinc_rt::python {
namespace {

namespace py = pybind11;
using namespace py::literals;

py::object make(const char* module, const char* name, const py::dict& fields) {
  return py::module_::import(module).attr(name)(**fields);
}

py::object to_python(const Usage& u) {
  return make(
      "zinc_rt.results", "Usage",
      py::dict("prompt_tokens"_a = u.prompt_tokens, "completion_tokens"_a = u.completion_tokens,
               "total_tokens"_a = u.total_tokens, "cached_tokens"_a = u.cached_tokens,
               "reasoning_tokens"_a = u.reasoning_tokens, "accepted_prediction_tokens"_a = u.accepted_prediction_tokens,
               "rejected_prediction_tokens"_a = u.rejected_prediction_tokens));
}

py::object to_python(const Timings& t) {
  return make("zinc_rt.results", "Timings",
              py::dict("queue_ms"_a = t.queue_ms, "prefill_ms"_a = t.prefill_ms, "decode_ms"_a = t.decode_ms,
                       "prefill_tokens_per_s"_a = t.prefill_tokens_per_s,
                       "decode_tokens_per_s"_a = t.decode_tokens_per_s, "draft_tokens"_a = t.draft_tokens,
                       "accepted_draft_tokens"_a = t.accepted_draft_tokens, "clamps"_a = t.clamps));
}

}  // namespace

py::object to_python(const TokenLogprob& p) {
  return make("zinc_rt.results", "TokenLogprob",
              py::dict("token_id"_a = p.token_id, "logprob"_a = p.logprob, "top"_a = p.top));
}

py::object to_python(const ToolCall& c) {
  return make("zinc_rt.results", "ToolCall", py::dict("id"_a = c.id, "name"_a = c.name, "arguments"_a = c.arguments));
}

py::object to_python(const OutputPiece& p) {
  static constexpr const char* kKinds[] = {"text", "reasoning", "call_begin", "call_arguments", "call_end"};
  return make("zinc_rt.results", "OutputPiece",
              py::dict("kind"_a = kKinds[static_cast<std::size_t>(p.kind)], "text"_a = p.text, "call"_a = p.call,
                       "id"_a = p.id));
}

py::object to_python(const Completion& c) {
  return make("zinc_rt.results", "Completion",
              py::dict("text"_a = c.text, "reasoning"_a = c.reasoning, "tool_calls"_a = c.tool_calls,
                       "token_ids"_a = c.token_ids, "finish_reason"_a = c.finish_reason, "logprobs"_a = c.logprobs,
                       "prompt_logprobs"_a = c.prompt_logprobs, "logits_hashes"_a = c.logits_hashes, "seed"_a = c.seed,
                       "usage"_a = to_python(c.usage), "timings"_a = to_python(c.timings), "choices"_a = c.choices));
}

py::object to_python(const StreamEvent& e) {
  return make("zinc_rt.results", "StreamEvent",
              py::dict("token_id"_a = e.is_token ? std::optional(e.token_id) : std::nullopt, "text"_a = e.text,
                       "preempted"_a = e.preempted, "index"_a = e.index, "logprob"_a = e.logprob, "pieces"_a = e.pieces,
                       "logits_hash"_a = e.logits_hash));
}

py::object to_python(const Difference& d) {
  return make("zinc_rt.report", "Difference",
              py::dict("name"_a = d.name, "layer"_a = d.layer, "equal"_a = d.equal, "n_values"_a = d.n_values,
                       "n_different"_a = d.n_different, "max_abs"_a = d.max_abs, "mean_abs"_a = d.mean_abs,
                       "histogram"_a = d.histogram));
}

py::object to_python(const ValidateReport& r) {
  return make(
      "zinc_rt.report", "ValidateReport",
      py::dict("equal"_a = r.equal, "sides"_a = py::make_tuple(r.sides[0], r.sides[1]), "token_ids"_a = r.token_ids,
               "tolerance"_a = r.tolerance, "layers"_a = r.layers, "logits"_a = r.logits, "n_rows"_a = r.n_rows,
               "n_same_top"_a = r.n_same_top, "_text"_a = r.to_text(), "_json"_a = r.to_json()));
}

py::object to_python(const TenantQuota& q) {
  const auto given = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  return make(
      "zinc_rt.quota", "TenantQuota",
      py::dict("max_concurrent_slots"_a = q.max_concurrent_slots, "max_kv_pages"_a = q.max_kv_pages,
               "reserved_kv_pages"_a = q.reserved_kv_pages, "max_context_tokens"_a = q.max_context_tokens,
               "decode_tokens_per_s"_a = q.decode_tokens_per_s, "prefill_tokens_per_s"_a = q.prefill_tokens_per_s,
               "weight"_a = q.weight, "qos_class"_a = q.qos_class, "isolation_group"_a = given(q.isolation_group),
               "speculate"_a = given(q.speculate)));
}

TenantQuota to_quota(py::handle value) {
  TenantQuota q;
  const auto take = [&]<class T>(const char* name, T& field) { field = value.attr(name).template cast<T>(); };
  take("max_concurrent_slots", q.max_concurrent_slots);
  take("max_kv_pages", q.max_kv_pages);
  take("reserved_kv_pages", q.reserved_kv_pages);
  take("max_context_tokens", q.max_context_tokens);
  take("decode_tokens_per_s", q.decode_tokens_per_s);
  take("prefill_tokens_per_s", q.prefill_tokens_per_s);
  take("weight", q.weight);
  take("qos_class", q.qos_class);
  const auto take_given = [&](const char* name, std::string& field) {
    if (const py::object given = value.attr(name); !given.is_none()) field = given.cast<std::string>();
  };
  take_given("isolation_group", q.isolation_group);
  take_given("speculate", q.speculate);
  return q;
}

}  // namespace zinc_rt::python
