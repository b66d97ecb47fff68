// Reads the body of /v1/responses, OpenAI's API.
#include "base/base64.h"
#include "base/error.h"
#include "base/utf8.h"
#include "server/api/body_reader.h"
#include "server/api/chat_builder.h"

namespace zinc_rt::server {
namespace {

// Reads the items of the input into a chat.
class ResponsesReader : public ChatReader {
 public:
  using ChatReader::ChatReader;

  void input(const Json& value) {
    if (value.is_string()) return chat_.text("user", value.get<std::string>());
    constexpr std::size_t kMax = 100000;
    if (!value.is_array() || value.empty() || value.size() > kMax)
      return wrong("input", value, fmt::format("a text or a list of 1 to {} items", kMax));
    for (std::size_t i = 0; i < value.size() && body_.is_good(); ++i) item(value[i], place("input", i));
  }

 private:
  void item(const Json& item, const std::string& at) {
    if (!item.is_object()) return wrong(at, item, "an object");
    const auto type = item.value("type", Json());
    if (type == "message" || type.is_null()) return message(item, at);
    if (type == "function_call") {
      known(item, at, {"type", "id", "call_id", "name", "namespace", "arguments", "status"});
      const auto id = string_in(item, "call_id", at), name = string_in(item, "name", at);
      return chat_.call(id, name, string_in(item, "arguments", at));
    }
    if (type == "function_call_output") {
      known(item, at, {"type", "id", "call_id", "output", "status"});
      const auto output = item.value("output", Json());
      return chat_.result(string_in(item, "call_id", at), text_of(output, at + ".output"));
    }
    if (type == "reasoning") {
      known(item, at, {"type", "id", "summary", "content", "encrypted_content", "status"});
      return chat_.reasoning(reasoning_of(item, at));
    }
    wrong(at + ".type", type, "message, function_call, function_call_output or reasoning");
  }

  // Reports an error if the object has a field that is not in `names`.
  void known(const Json& object, const std::string& at, std::initializer_list<const char*> names) {
    body_.object_at(at.c_str(), object, [&](BodyReader& one) {
      for (const char* name : names) static_cast<void>(one.fields().get(name));
    });
  }

  void message(const Json& item, const std::string& at) {
    known(item, at, {"type", "id", "role", "content", "status", "phase", "end_turn"});
    const auto role = item.find("role"), content = item.find("content");
    if (role == item.end() || (*role != "user" && *role != "assistant" && *role != "system" && *role != "developer"))
      return wrong(at + ".role", role == item.end() ? Json() : *role, "user, assistant, system or developer");
    if (content == item.end()) return wrong(at + ".content", Json(), "a text or a list of parts");
    // Reasoning, text and calls of one answer become one message. Each item of another role becomes a message of its
    // own.
    if (*role != "assistant") chat_.close();
    const auto text = text_of(*content, at + ".content");
    chat_.text(*role == "developer" ? "system" : role->get_ref<const std::string&>().c_str(), text);
  }

  // Returns the reasoning's text, or decodes it from the encrypted_content that this server sent. If another server
  // sent the item, returns the summary.
  std::string reasoning_of(const Json& item, const std::string& at) {
    if (const auto content = item.find("content"); content != item.end() && content->is_array() && !content->empty())
      return text_of(*content, at + ".content");
    const auto sealed = item.find("encrypted_content");
    const auto summary = item.find("summary");
    if (sealed == item.end() || !sealed->is_string())
      return summary == item.end() || summary->is_null() ? std::string() : text_of(*summary, at + ".summary");
    const auto text = from_base64(sealed->get_ref<const std::string&>());
    if (text && is_utf8(*text)) return *text;
    wrong(at + ".encrypted_content", *sealed, "what this server sent");
    return {};
  }

  std::string text_of(const Json& content, const std::string& at) {
    return joined(content, at, "a text or a list of parts", [this](const Json& part, const std::string& here) {
      const auto type = part.is_object() ? part.value("type", Json()) : Json();
      if (type == "refusal") {
        known(part, here, {"type", "refusal"});
        return string_in(part, "refusal", here);
      }
      if (type == "input_text" || type == "output_text" || type == "text" || type == "reasoning_text" ||
          type == "summary_text") {
        known(part, here, {"type", "text", "annotations", "logprobs"});
        return string_in(part, "text", here);
      }
      wrong(here + ".type", type, "input_text, output_text or reasoning_text (the models here read text alone)");
      return std::string();
    });
  }
};

// Returns a function in the form of chats. Agents also list tools of other kinds, which are not passed to the model.
// The answer's `tools` lists only the tools that were passed on.
Json read_responses_tool(BodyReader& r, const Json& tool, const std::string& at, Json& shown) {
  Json out;
  if (!tool.is_object() || !tool.contains("type")) {
    r.wrong(at.c_str(), show(tool) + " is given, an object with a type wanted");
    return out;
  }
  if (tool["type"] != "function") return out;
  r.object_at(at.c_str(), tool, [&](BodyReader& one) {
    static_cast<void>(one.fields().get("type"));
    out = chat_tool(one, "parameters");
    const Json* parameters = one.fields().get("parameters");
    if (parameters != nullptr && !parameters->is_object())
      one.wrong("parameters", show(*parameters) + " is given, a JSON schema, which is an object, wanted");
    static_cast<void>(one.fields().get("defer_loading"));
  });
  shown.push_back(tool);
  return out;
}

// Reads text.format. It has the fields of response_format, but those of the inner object json_schema are at its top
// level.
void read_text_format(BodyReader& r, Request& q, GenerationCall& call) {
  const auto read = [&](BodyReader& one) {
    const auto type = one.take(one.fields().get_choice("type", {"text", "json_object", "json_schema"}));
    if (type == "json_object") set_format(one, "type", {OutputFormat::Kind::kJsonObject, {}, {}}, q, call);
    const Json* schema = one.fields().get("schema");
    if (type == "json_schema") set_schema(one, "schema", schema == nullptr ? Json() : *schema, q, call);
    for (const char* name : {"name", "description", "strict"}) static_cast<void>(one.fields().get(name));
  };
  r.object("format", read, "an object with a type");
}

}  // namespace

ApiResult<GenerationCall> parse_responses(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  call.api = Api::kResponses;
  Request q = defaults;
  q.parse_output = true;
  BodyReader r(body, ignored, RequestField::kResponses);
  Json again = Json::object();
  const auto keep = [&](const char* name, const Json& otherwise) {
    const auto value = body.find(name);
    again[name] = value == body.end() ? otherwise : *value;
  };
  read_members(r, RequestField::kResponses, q);
  r.into(call.stream, r.boolean("stream"));
  r.object("stream_options", [&](BodyReader& options) {
    options.into(call.resumable, options.boolean("resumable"));
    options.refuse("include_obfuscation", "events are not padded", {false});
  });
  read_max_tokens(r, q, {"max_output_tokens"}, Request::kAllThatFit, false);
  ResponsesReader conversation(r);
  if (const Json* input = r.fields().get("input"))
    conversation.input(*input);
  else
    r.wrong("input", "it is missing");
  if (const auto instructions = r.string("instructions", 64u << 20); instructions && !instructions->empty())
    conversation.chat().system_first(*instructions);
  Json shown = Json::array();
  Conversation chat;
  read_tools(r, chat, [&](const Json& tool, const std::string& at) { return read_responses_tool(r, tool, at, shown); });
  read_tool_choice(r, "", q, chat, call);
  if (const auto many = r.boolean("parallel_tool_calls"); many && !*many) q.max_tool_calls = 1;
  r.object("reasoning", [&](BodyReader& one) {
    read_effort(one, "effort", chat.variables);
    // The following fields are accepted without an effect, because answers contain the whole reasoning and never a
    // summary.
    for (const char* name : {"summary", "generate_summary", "context"}) static_cast<void>(one.fields().get(name));
  });
  r.object("text", [&](BodyReader& one) {
    read_text_format(one, q, call);
    static_cast<void>(one.fields().get("verbosity"));
  });
  if (const Json* include = r.fields().get("include")) {
    if (!include->is_array()) r.wrong("include", show(*include) + " is given, a list wanted");
    for (const Json& one : *include)
      if (one == "reasoning.encrypted_content")
        call.seals_reasoning = true;
      else
        r.wrong("include", show(one) + " is not served: reasoning.encrypted_content alone is");
  }
  // endpoints/responses.cpp has already put the earlier response into the input.
  static_cast<void>(r.string("previous_response_id", 256));
  const bool is_stored = r.boolean("store").value_or(false);
  r.refuse("conversation", "previous_response_id is what goes on with an earlier answer");
  r.refuse("background", "an answer ends with its connection", {false});
  r.refuse("truncation", "a conversation that is too long is refused", {"disabled"});
  r.refuse("prompt", "there are no stored prompts here");
  // max_tool_calls limits the tool calls that the server itself runs. It has no effect, because this server runs none.
  static_cast<void>(r.integer("max_tool_calls", 1, 1 << 20));
  r.refuse("top_logprobs", "logprobs are served by chats and completions", {0});
  read_service_tier(r, {"auto", "default", "flex", "priority"}, call, q);
  read_callers_names(r);
  read_metadata(r);
  r.pass_over({"client_metadata", "prompt_cache_retention", "prompt_cache_options"});
  ZRT_CHECK_OK(r.finish());
  for (const char* name : {"instructions", "max_output_tokens", "max_tool_calls", "previous_response_id",
                           "prompt_cache_key", "safety_identifier", "user"})
    keep(name, nullptr);
  keep("parallel_tool_calls", true);
  keep("temperature", defaults.temperature);
  keep("top_p", defaults.top_p);
  keep("tool_choice", "auto");
  keep("truncation", "disabled");
  keep("metadata", Json::object());
  keep("text", Json{{"format", Json{{"type", "text"}}}});
  keep("reasoning", Json{{"effort", nullptr}, {"summary", nullptr}});
  again["tools"] = shown;
  again["store"] = is_stored;
  if (is_stored) {
    const Json& input = body["input"];
    call.stored_input = as_text(input.is_array() ? input : Json::array({Json{{"role", "user"}, {"content", input}}}));
  }
  again["background"] = false;
  again["top_logprobs"] = 0;
  call.shown_again = as_text(again);
  chat.messages = conversation.chat().take_messages();
  q.conversation = std::make_shared<const Conversation>(std::move(chat));
  call.requests.push_back(std::move(q));
  return call;
}

}  // namespace zinc_rt::server
