// Makes a Request from the keyword arguments of a Python call.
#include "zinc_rt/request_fields.h"

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

// Reads the output format: response_format as in OpenAI's API, or one of regex, choice and grammar.
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

void take_member(Keywords&, const char*, Request&, std::monostate) {}
template <class T>
void take_member(Keywords& keywords, const char* name, Request& r, T Request::* member) {
  keywords.take(name, r.*member);
}
// Reads an argument that is a text or a list of texts.
void take_member(Keywords& keywords, const char* name, Request& r, std::vector<std::string> Request::* member) {
  const auto given = keywords.find(name);
  if (py::isinstance<py::str>(given))
    r.*member = {given.cast<std::string>()};
  else if (!given.is_none())
    r.*member = given.cast<std::vector<std::string>>();
}

// These overloads return a default as Python source, in the form that the stub has it.
std::string in_python(std::monostate) {
  return "None";
}
template <class T>
std::string in_python(T Request::* member) {
  const Request defaults;
  return py::repr(py::cast(defaults.*member));
}

}  // namespace

// Returns the text that help() shows about a request's fields: one line per field, with its default.
std::string describe_request_fields() {
  std::string text;
  for (const RequestField& field : request_fields())
    if ((field.taken_by & RequestField::kPython) != 0)
      text += std::string("  ") + field.name + " (" +
              std::visit([](auto member) { return in_python(member); }, field.member) + "): " + field.help + "\n";
  return text;
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
  for (const RequestField& field : request_fields())
    if ((field.taken_by & RequestField::kPython) != 0)
      std::visit([&](auto member) { take_member(keywords, field.name, r, member); }, field.member);
  if (const auto processor = keywords.find("logits_processor"); !processor.is_none())
    r.logits_processor = python_processor(processor);
  std::optional<bool> parses;
  keywords.take("parse_output", parses);
  r.parse_output = parses.value_or(r.tools.has_value());
  read_output_format(keywords, r);
  keywords.check_all_taken();
  return r;
}

}  // namespace zinc_rt::python
