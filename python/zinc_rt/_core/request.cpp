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

namespace {

// response_format as OpenAI has it, or one of regex, choice and grammar.
void read_output_format(Keywords& keywords, Request& r) {
  using Kind = OutputFormat::Kind;
  std::size_t n_given = 0;
  const auto set = [&](OutputFormat format) {
    r.output_format = std::move(format);
    ++n_given;
  };
  const auto wrong = [](const std::string& message) { raise({StatusCode::kInvalidArgument, message, 0}); };
  if (const auto format = keywords.find("response_format"); !format.is_none()) {
    const auto fields = format.cast<py::dict>();
    const auto type = fields.contains("type") ? py::str(fields["type"]).cast<std::string>() : std::string();
    if (type == "json_object") {
      set({Kind::kJsonObject, {}, {}});
    } else if (type == "json_schema") {
      const py::object outer = fields.contains("json_schema") ? py::object(fields["json_schema"]) : py::none();
      if (!py::isinstance<py::dict>(outer) || !outer.cast<py::dict>().contains("schema"))
        wrong("response_format has no {\"json_schema\": {\"schema\": ...}}");
      set({Kind::kJsonSchema, to_json("response_format", outer["schema"]), {}});
    } else if (type == "structural_tag") {
      set({Kind::kStructuralTag, to_json("response_format", fields), {}});
    } else if (type != "text") {
      wrong("response_format has type \"" + type + "\"; text, json_object, json_schema or structural_tag is allowed");
    }
  }
  if (const auto regex = keywords.find("regex"); !regex.is_none()) set({Kind::kRegex, regex.cast<std::string>(), {}});
  if (const auto choice = keywords.find("choice"); !choice.is_none())
    set({Kind::kChoice, {}, choice.cast<std::vector<std::string>>()});
  if (const auto text = keywords.find("grammar"); !text.is_none()) set({Kind::kGbnf, text.cast<std::string>(), {}});
  if (n_given > 1) wrong("more than one of response_format, regex, choice and grammar is given, at most one allowed");
  if (const auto choice = keywords.find("tool_choice"); !choice.is_none()) {
    const auto text = choice.cast<std::string>();
    if (text == "required") {
      r.tool_choice = ToolChoice::kRequired;
    } else if (text != "auto") {
      r.tool_choice = ToolChoice::kNamed;
      r.named_tool = text;
    }
  }
}

}  // namespace

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
  std::optional<bool> parses;
  keywords.take("parse_output", parses);
  r.parse_output = parses.value_or(r.tools.has_value());
  keywords.take("max_tool_calls", r.max_tool_calls);
  read_output_format(keywords, r);
  keywords.take("logprobs", r.logprobs);
  keywords.take("prompt_logprobs", r.prompt_logprobs);
  keywords.take("return_logits_hash", r.return_logits_hash);
  keywords.take("deadline_ms", r.deadline_ms);
  keywords.take("stream_capacity", r.stream_capacity);
  keywords.check_all_taken();
  return r;
}

}  // namespace zinc_rt::python
