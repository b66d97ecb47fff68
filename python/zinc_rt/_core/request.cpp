// Requests from keyword arguments, and the values that calls return.
#include "zinc_rt/request.h"

#include <pybind11/stl.h>

#include "bindings.h"

namespace zinc_rt::python {

py::object Keywords::find(const char* name) {
  if (!kwargs_.contains(name)) return py::none();
  taken_.add(name);
  return kwargs_[name];
}

void Keywords::check_all_taken() const {
  for (const auto& [name, value] : kwargs_)
    if (!taken_.contains(name))
      throw py::type_error("unexpected keyword argument '" + py::str(name).cast<std::string>() + "'");
}

Request make_request(const py::object& prompt, const py::object& messages, const py::object& token_ids,
                     const py::kwargs& kwargs) {
  Request r;
  if (!prompt.is_none()) r.prompt = prompt.cast<std::string>();
  if (!messages.is_none()) r.messages = to_json(messages);
  if (!token_ids.is_none()) r.token_ids = token_ids.cast<std::vector<std::int32_t>>();
  Keywords keywords(kwargs);
  if (const auto tools = keywords.find("tools"); !tools.is_none()) r.tools = to_json(tools);
  if (const auto variables = keywords.find("chat_template_kwargs"); !variables.is_none())
    r.chat_template_kwargs = to_json(variables);
  keywords.take("add_generation_prompt", r.add_generation_prompt);
  keywords.take("continue_final_message", r.continue_final_message);
  keywords.take("model", r.model);
  keywords.take("qos", r.qos);
  keywords.take("n", r.n);
  keywords.take("cache_salt", r.cache_salt);
  keywords.take("request_id", r.request_id);
  keywords.take("traceparent", r.traceparent);
  keywords.take("max_tokens", r.max_tokens);
  keywords.take("min_tokens", r.min_tokens);
  keywords.take("temperature", r.temperature);
  keywords.take("top_k", r.top_k);
  keywords.take("top_p", r.top_p);
  keywords.take("min_p", r.min_p);
  keywords.take("typical_p", r.typical_p);
  keywords.take("repetition_penalty", r.repetition_penalty);
  keywords.take("presence_penalty", r.presence_penalty);
  keywords.take("frequency_penalty", r.frequency_penalty);
  keywords.take("logit_bias", r.logit_bias);
  keywords.take("seed", r.seed);
  if (const auto stop = keywords.find("stop"); py::isinstance<py::str>(stop))
    r.stop = {stop.cast<std::string>()};
  else if (!stop.is_none())
    r.stop = stop.cast<std::vector<std::string>>();
  keywords.take("include_stop_str_in_output", r.include_stop_str_in_output);
  keywords.take("stop_token_ids", r.stop_token_ids);
  keywords.take("ignore_eos", r.ignore_eos);
  keywords.take("skip_special_tokens", r.skip_special_tokens);
  keywords.take("logprobs", r.logprobs);
  keywords.take("prompt_logprobs", r.prompt_logprobs);
  keywords.take("return_logits_hash", r.return_logits_hash);
  keywords.take("deadline_ms", r.deadline_ms);
  keywords.take("stream_capacity", r.stream_capacity);
  keywords.check_all_taken();
  return r;
}

void bind_request(py::module_& m) {
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
      .def_readonly("queue_ms", &Timings::queue_ms)
      .def_readonly("prefill_ms", &Timings::prefill_ms)
      .def_readonly("decode_ms", &Timings::decode_ms)
      .def_readonly("prefill_tokens_per_s", &Timings::prefill_tokens_per_s)
      .def_readonly("decode_tokens_per_s", &Timings::decode_tokens_per_s)
      .def_readonly("clamps", &Timings::clamps);
  py::class_<Completion>(m, "Completion", "What a generation gave. With n > 1: the first choice, usage of all.")
      .def_readonly("text", &Completion::text)
      .def_readonly("token_ids", &Completion::token_ids)
      .def_readonly("finish_reason", &Completion::finish_reason)
      .def_readonly("logprobs", &Completion::logprobs)
      .def_readonly("prompt_logprobs", &Completion::prompt_logprobs)
      .def_readonly("logits_hashes", &Completion::logits_hashes)
      .def_readonly("seed", &Completion::seed)
      .def_readonly("usage", &Completion::usage)
      .def_readonly("timings", &Completion::timings)
      .def_readonly("choices", &Completion::choices, "With n > 1 all n, else empty.")
      .def("__repr__", [](const Completion& c) {
        return py::str("Completion(text={!r}, finish_reason={!r})").format(c.text, c.finish_reason);
      });
  py::class_<StreamEvent>(m, "StreamEvent")
      .def_property_readonly("token_id",
                             [](const StreamEvent& e) { return e.is_token ? std::optional(e.token_id) : std::nullopt; })
      .def_readonly("text", &StreamEvent::text)
      .def_readonly("preempted", &StreamEvent::preempted)
      .def_readonly("index", &StreamEvent::index)
      .def_readonly("logprob", &StreamEvent::logprob)
      .def("__repr__", [](const StreamEvent& e) {
        return py::str("StreamEvent(token_id={!r}, text={!r}, preempted={!r}, index={!r})")
            .format(e.is_token ? std::optional(e.token_id) : std::nullopt, e.text, e.preempted, e.index);
      });
}

}  // namespace zinc_rt::python
