// Reads the output format: OpenAI's response_format and the fields of other servers' APIs.
#include <algorithm>

#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

using Kind = OutputFormat::Kind;

void set_text(BodyReader& r, const char* name, Kind kind, const Json& value, Request& q, GenerationCall& call) {
  if (!value.is_string()) return r.wrong(name, show(value) + " is given, a text wanted");
  set_format(r, name, {kind, value.get<std::string>(), {}}, q, call);
}

void set_choices(BodyReader& r, const char* name, const Json& value, Request& q, GenerationCall& call) {
  constexpr std::size_t kMax = 100'000;
  OutputFormat format{Kind::kChoice, {}, {}};
  if (!value.is_array() || value.empty() || value.size() > kMax)
    return r.wrong(name, fmt::format("{} is given, a list of 1 to {} texts wanted", show(value), kMax));
  for (const Json& one : value) {
    if (!one.is_string()) return r.wrong(name, show(one) + " is given, a text wanted");
    format.choices.push_back(one.get<std::string>());
  }
  set_format(r, name, std::move(format), q, call);
}

// Sets the schema from an object, or from JSON text, which vLLM's clients send.
void set_any_schema(BodyReader& r, const char* name, const Json& value, Request& q, GenerationCall& call) {
  if (!value.is_string()) return set_schema(r, name, value, q, call);
  const auto parsed = parse_json(value.get_ref<const std::string&>());
  if (!parsed) return r.wrong(name, parsed.error().message);
  set_schema(r, name, *parsed, q, call);
}

// Sets the structural tag from `value`, an object or, as vLLM's clients send it, the object's JSON text.
void set_tag(BodyReader& r, const char* name, const Json& value, Request& q, GenerationCall& call) {
  if (!value.is_string() && !value.is_object())
    return r.wrong(name, show(value) + " is given, an object or its text wanted");
  if (value.is_object()) return set_format(r, name, {Kind::kStructuralTag, as_text(value), {}}, q, call);
  const auto parsed = parse_json(value.get_ref<const std::string&>());
  if (!parsed) return r.wrong(name, parsed.error().message);
  set_format(r, name, {Kind::kStructuralTag, as_text(*parsed), {}}, q, call);
}

void read_response_format(BodyReader& r, Request& q, GenerationCall& call) {
  const auto read = [&](BodyReader& one) {
    const auto type =
        one.take(one.fields().get_choice("type", {"text", "json_object", "json_schema", "structural_tag"}));
    const Json* schema = one.fields().get("json_schema");
    for (const char* name : {"structures", "triggers", "format"})
      if (one.fields().get(name) != nullptr && type != "structural_tag")
        one.wrong(name, "only with type structural_tag");
    if (!type && one.is_good()) one.wrong("type", "it is missing");
    if (type == "json_object") set_format(one, "type", {Kind::kJsonObject, {}, {}}, q, call);
    if (type == "structural_tag")
      set_format(r, "response_format", {Kind::kStructuralTag, as_text(*r.fields().get("response_format")), {}}, q,
                 call);
    if (type != "json_schema") {
      if (schema != nullptr) one.wrong("json_schema", "only with type json_schema");
      return;
    }
    if (schema == nullptr || !schema->is_object() || !schema->contains("schema"))
      return one.wrong("json_schema", "an object with a schema wanted");
    one.object_at("json_schema", *schema, [&](BodyReader& inner) {
      set_schema(inner, "schema", (*schema)["schema"], q, call);
      for (const char* name : {"schema", "name", "description", "strict"}) static_cast<void>(inner.fields().get(name));
    });
  };
  r.object("response_format", read, "an object with a type");
}

void read_structured_outputs(BodyReader& r, Request& q, GenerationCall& call) {
  r.object("structured_outputs", [&](BodyReader& one) {
    if (const Json* schema = one.fields().get("json")) set_any_schema(one, "json", *schema, q, call);
    if (const Json* regex = one.fields().get("regex")) set_text(one, "regex", Kind::kRegex, *regex, q, call);
    if (const Json* choice = one.fields().get("choice")) set_choices(one, "choice", *choice, q, call);
    if (const Json* text = one.fields().get("grammar")) set_text(one, "grammar", Kind::kGbnf, *text, q, call);
    if (one.boolean("json_object").value_or(false))
      set_format(one, "json_object", {Kind::kJsonObject, {}, {}}, q, call);
    if (const Json* tag = one.fields().get("structural_tag")) set_tag(one, "structural_tag", *tag, q, call);
    one.refuse("disable_any_whitespace", "up to 8 blanks stand between the tokens of JSON", {false});
    one.refuse("disable_additional_properties", "say it in the schema", {false});
    one.refuse("whitespace_pattern", "up to 8 blanks stand between the tokens of JSON");
  });
}

}  // namespace

void set_format(BodyReader& r, const char* name, OutputFormat format, Request& q, GenerationCall& call) {
  if (q.output_format.kind != Kind::kText) return r.wrong(name, "another format of the answer is given beside it");
  q.output_format = std::move(format);
  call.format_field = r.fields().full_name(name);
}

void set_schema(BodyReader& r, const char* name, const Json& schema, Request& q, GenerationCall& call) {
  if (!schema.is_object() && !schema.is_boolean())
    return r.wrong(name, show(schema) + " is given, a JSON schema, which is an object, wanted");
  set_format(r, name, {Kind::kJsonSchema, as_text(schema), {}}, q, call);
}

void read_output_format(BodyReader& r, Request& q, GenerationCall& call) {
  read_response_format(r, q, call);
  read_structured_outputs(r, q, call);
  for (const char* name : {"guided_json", "json_schema"})
    if (const Json* schema = r.fields().get(name)) set_any_schema(r, name, *schema, q, call);
  for (const char* name : {"guided_regex", "regex"})
    if (const Json* regex = r.fields().get(name)) set_text(r, name, Kind::kRegex, *regex, q, call);
  for (const char* name : {"guided_choice", "choice"})
    if (const Json* choices = r.fields().get(name)) set_choices(r, name, *choices, q, call);
  for (const char* name : {"guided_grammar", "grammar"})
    if (const Json* text = r.fields().get(name)) set_text(r, name, Kind::kGbnf, *text, q, call);
}

namespace {

const Json* find_in(const Json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && it != object.end() ? &*it : nullptr;
}

// Reads OpenAI's allowed_tools. Only these tools may be called, so the prompt shows the model no others.
void read_allowed_tools(BodyReader& r, const char* path, const Json& allowed, Request& q, Conversation& chat) {
  const auto wrong = [&](const std::string& what) { r.wrong("tool_choice", "allowed_tools: " + what); };
  const Json *mode = find_in(allowed, "mode"), *list = find_in(allowed, "tools");
  if (mode == nullptr || (*mode != "auto" && *mode != "required")) return wrong("a mode, auto or required, wanted");
  if (list == nullptr || !list->is_array() || list->empty()) return wrong("a list of functions wanted");
  if (chat.tools.is_null()) return wrong("given without tools");
  Json kept = Json::array();
  for (const Json& one : *list) {
    const Json* function = *path == '\0' ? &one : find_in(one, path);
    const Json* name = function == nullptr ? nullptr : find_in(*function, "name");
    const auto tool = std::ranges::find_if(
        chat.tools, [&](const Json& t) { return name != nullptr && t["function"]["name"] == *name; });
    if (tool == chat.tools.end()) return wrong(show(one) + " is none of the tools");
    if (std::ranges::find(kept, *tool) == kept.end()) kept.push_back(*tool);
  }
  chat.tools = std::move(kept);
  if (*mode == "required") q.tool_choice = ToolChoice::kRequired;
}

}  // namespace

void read_tool_choice(BodyReader& r, const char* path, Request& q, Conversation& chat, GenerationCall& call) {
  const Json* choice = r.fields().get("tool_choice");
  if (choice == nullptr || *choice == "auto") return;
  if (*choice == "none") {
    chat.tools = nullptr;
    return;
  }
  if (choice->is_object() && choice->value("type", Json()) == "allowed_tools") {
    const Json* allowed = *path == '\0' ? choice : find_in(*choice, "allowed_tools");
    return read_allowed_tools(r, path, allowed == nullptr ? Json() : *allowed, q, chat);
  }
  const Json* named = nullptr;
  if (choice->is_object() && choice->value("type", Json()) == "function") {
    named = *path == '\0' ? &*choice : choice->contains(path) ? &(*choice)[path] : nullptr;
    if (named != nullptr && (!named->is_object() || !named->contains("name") || !(*named)["name"].is_string()))
      named = nullptr;
  }
  if (*choice != "required" && named == nullptr)
    return r.wrong("tool_choice", show(*choice) + " is given; auto, none, required, or a function by name wanted");
  if (chat.tools.is_null()) return r.wrong("tool_choice", show(*choice) + " is given without tools");
  q.tool_choice = named == nullptr ? ToolChoice::kRequired : ToolChoice::kNamed;
  if (named == nullptr) return;
  q.named_tool = (*named)["name"].get<std::string>();
  call.names_the_tool = true;
}

}  // namespace zinc_rt::server
