// Requests from keyword arguments.
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
      raise(
          {StatusCode::kInternal, "the stub has " + py::str(name).cast<std::string>() + ", the extension has not", 0});
}

Request make_request(const py::object& prompt, const py::object& messages, const py::object& token_ids,
                     const py::kwargs& kwargs) {
  Request r;
  if (!prompt.is_none()) r.prompt = prompt.cast<std::string>();
  if (!messages.is_none()) r.messages = to_json("messages", messages);
  if (!token_ids.is_none()) r.token_ids = token_ids.cast<std::vector<std::int32_t>>();
  Keywords keywords(kwargs);
  if (const auto tools = keywords.find("tools"); !tools.is_none()) r.tools = to_json("tools", tools);
  if (const auto variables = keywords.find("chat_template_kwargs"); !variables.is_none())
    r.chat_template_kwargs = to_json("chat_template_kwargs", variables);
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
  if (const auto processor = keywords.find("logits_processor"); !processor.is_none())
    r.logits_processor = python_processor(processor);
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

}  // namespace zinc_rt::python
