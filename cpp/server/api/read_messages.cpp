// Reads the body of /v1/messages, Anthropic's API.
#include "base/error.h"
#include "server/api/body_reader.h"
#include "server/api/chat_builder.h"

namespace zinc_rt::server {
namespace {

// Claude Code puts such a line, which changes with each request, before the system prompt. With the line no cached
// prefix would ever match, so it is removed.
constexpr std::string_view kBilling = "x-anthropic-billing-header:";

// Reads the messages of a conversation into a chat.
class MessagesReader : public ChatReader {
 public:
  using ChatReader::ChatReader;

  void system(const Json& value) {
    std::string text;
    if (value.is_string()) {
      text = value.get<std::string>();
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        const auto piece = text_of(value[i], place("system", i));
        if (i == 0 && piece.starts_with(kBilling)) continue;
        text += (text.empty() || piece.empty() ? "" : "\n") + piece;
      }
    } else {
      return wrong("system", value, "a text or a list of text blocks");
    }
    if (text.starts_with(kBilling)) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
    if (!text.empty()) chat_.text("system", text);
    chat_.close();
  }

  void messages(const Json& list) {
    constexpr std::size_t kMax = 100000;
    if (!list.is_array() || list.empty() || list.size() > kMax)
      return wrong("messages", list, fmt::format("a list of 1 to {} messages", kMax));
    for (std::size_t i = 0; i < list.size() && body_.is_good(); ++i) {
      const auto at = place("messages", i);
      const Json& turn = list[i];
      if (!turn.is_object()) return wrong(at, turn, "an object");
      const auto role = turn.find("role"), content = turn.find("content");
      if (role == turn.end() || (*role != "user" && *role != "assistant" && *role != "system"))
        return wrong(at + ".role", role == turn.end() ? Json() : *role, "user, assistant or system");
      if (content == turn.end()) return wrong(at + ".content", Json(), "a text or a list of blocks");
      chat_.close();
      this->content(role->get<std::string>(), *content, at + ".content");
    }
  }

 private:
  void content(const std::string& role, const Json& content, const std::string& at) {
    if (content.is_string()) return chat_.text(role.c_str(), content.get<std::string>());
    if (!content.is_array()) return wrong(at, content, "a text or a list of blocks");
    if (content.empty()) chat_.text(role.c_str(), "");  // a message without content blocks is still a message
    for (std::size_t i = 0; i < content.size() && body_.is_good(); ++i) block(role, content[i], place(at, i));
  }

  void block(const std::string& role, const Json& block, const std::string& at) {
    const auto type = block.is_object() ? block.find("type") : block.end();
    if (!block.is_object() || type == block.end() || !type->is_string())
      return wrong(at, block, "a block, an object with a type,");
    const auto& name = type->get_ref<const std::string&>();
    if (name == "text") return chat_.text(role.c_str(), text_of(block, at));
    if (name == "tool_result" && role == "user") {
      const auto content = block.find("content");
      const bool is_empty = content == block.end() || content->is_null();
      const auto text = is_empty ? std::string() : result_text(*content, at + ".content");
      const auto is_error = block.find("is_error");
      if (is_error != block.end() && !is_error->is_null() && !is_error->is_boolean())
        return wrong(at + ".is_error", *is_error, "true or false");
      const bool has_failed = is_error != block.end() && *is_error == true;
      return chat_.result(string_in(block, "tool_use_id", at), has_failed ? failure(text) : text);
    }
    if (role == "assistant") {
      if (name == "tool_use") {
        const auto input = block.find("input");
        if (input == block.end() || !input->is_object())
          return wrong(at + ".input", input == block.end() ? Json() : *input, "an object");
        const auto id = string_in(block, "id", at);
        return chat_.call(id, string_in(block, "name", at), *input);
      }
      if (name == "thinking") return chat_.reasoning(string_in(block, "thinking", at));
      if (name == "redacted_thinking") return;  // it is encrypted, so a template cannot render it
    }
    wrong(at + ".type", *type,
          role == "user"        ? "text or tool_result (the models here read text alone)"
          : role == "assistant" ? "text, thinking or tool_use"
                                : "text");
  }

  // Returns the text of a failed tool's result. Chats have no field for the failure, so the text begins with "Error".
  static std::string failure(const std::string& text) {
    constexpr std::string_view kSaid = "Error";
    if (text.starts_with(kSaid)) return text;
    return std::string(kSaid) + (text.empty() ? "" : ": ") + text;
  }

  std::string text_of(const Json& block, const std::string& at) {
    if (!block.is_object() || block.value("type", Json()) != "text") {
      wrong(at, block, "a block of type text (the models here read text alone)");
      return {};
    }
    return string_in(block, "text", at);
  }

  std::string result_text(const Json& content, const std::string& at) {
    return joined(content, at, "a text or a list of text blocks",
                  [this](const Json& block, const std::string& here) { return text_of(block, here); });
  }
};

// Returns a tool in the form of chats. A tool that the server itself would have to run is refused.
Json read_messages_tool(BodyReader& r, const Json& tool, const std::string& at) {
  Json out;
  r.object_at(at.c_str(), tool, [&](BodyReader& one) {
    one.refuse("type", "this server runs no tools itself", {"custom"});
    out = chat_tool(one, "input_schema");
    const Json* schema = one.fields().get("input_schema");
    if (schema == nullptr || !schema->is_object())
      one.wrong("input_schema", "a JSON schema, which is an object, wanted");
    static_cast<void>(one.fields().get("cache_control"));  // has no effect: the prefix cache is always used
    for (const char* harmless : {"eager_input_streaming", "input_examples", "allowed_callers"})
      static_cast<void>(one.fields().get(harmless));
    // The model may see a tool with deferred loading only after a tool search has found it. This server has no tool
    // search, so such tools are not passed on.
    if (one.boolean("defer_loading").value_or(false)) out = nullptr;
  });
  return out;
}

void read_messages_choice(BodyReader& r, Request& q, Conversation& chat) {
  const auto read = [&](BodyReader& one) {
    const auto type = one.take(one.fields().get_choice("type", {"auto", "any", "tool", "none"}));
    const auto name = one.string("name", 256);
    if (type == "none") chat.tools = nullptr;
    if ((type == "any" || type == "tool") && chat.tools.is_null())
      one.wrong("type", fmt::format("{} is given without tools", *type));
    if (type == "any") q.tool_choice = ToolChoice::kRequired;
    if (type == "tool") {
      q.tool_choice = ToolChoice::kNamed;
      q.named_tool = name.value_or("");
      if (!name) one.wrong("name", "it is missing");
    }
    if (one.boolean("disable_parallel_tool_use").value_or(false)) q.max_tool_calls = 1;
  };
  r.object("tool_choice", read, "an object with a type");
}

void read_messages_format(BodyReader& r, Request& q, GenerationCall& call) {
  const auto read = [&](BodyReader& one) {
    static_cast<void>(one.take(one.fields().get_choice("type", {"json_schema"})));
    const Json* schema = one.fields().get("schema");
    set_schema(one, "schema", schema == nullptr ? Json() : *schema, q, call);
  };
  r.object("format", read, "an object with a type");
}

void read_thinking(BodyReader& r, Json& variables, GenerationCall& call) {
  const auto read = [&](BodyReader& one) {
    const auto type = one.take(one.fields().get_choice("type", {"enabled", "disabled", "adaptive"}));
    if (type) variables["enable_thinking"] = *type != "disabled";
    static_cast<void>(one.integer("budget_tokens", 0, 1 << 24));
    if (const auto display = one.take(one.fields().get_choice("display", {"summarized", "omitted"})))
      call.include_reasoning = *display != "omitted";
  };
  r.object("thinking", read, "an object with a type");
}

}  // namespace

ApiResult<GenerationCall> parse_messages(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  call.api = Api::kMessages;
  Request q = defaults;
  q.parse_output = true;
  BodyReader r(body, ignored, RequestField::kMessages);
  read_members(r, RequestField::kMessages, q);
  r.into(call.stream, r.boolean("stream"));
  read_max_tokens(r, q, {"max_tokens"}, Request::kAllThatFit, false);
  if (q.max_tokens == Request::kAllThatFit) r.wrong("max_tokens", "it is missing");
  if (const Json* stops = r.fields().get("stop_sequences")) {
    if (!stops->is_array() || stops->size() > 16)
      r.wrong("stop_sequences", "a list of at most 16 texts wanted");
    else
      for (std::size_t i = 0; i < stops->size(); ++i)
        if (const Json& one = (*stops)[i]; one.is_string() && !one.get_ref<const std::string&>().empty())
          q.stop.push_back(one.get<std::string>());
        else
          r.wrong_entry("stop_sequences", place("stop_sequences", i),
                        show(one) + " is given, texts that are not empty wanted");
  }
  MessagesReader conversation(r);
  if (const Json* system = r.fields().get("system")) conversation.system(*system);
  if (const Json* messages = r.fields().get("messages"))
    conversation.messages(*messages);
  else
    r.wrong("messages", "it is missing");
  Conversation chat;
  read_tools(r, chat, [&](const Json& tool, const std::string& at) { return read_messages_tool(r, tool, at); });
  read_messages_choice(r, q, chat);
  Json& variables = chat.variables;
  // A model thinks only if the request enables it, as in Anthropic's API.
  variables["enable_thinking"] = false;
  read_thinking(r, variables, call);
  r.object("output_config", [&](BodyReader& one) {
    if (const auto effort = one.take(one.fields().get_choice("effort", {"low", "medium", "high", "xhigh", "max"})))
      variables["reasoning_effort"] = *effort;
    read_messages_format(one, q, call);
  });
  if (const auto tier = r.take(r.fields().get_choice("service_tier", {"auto", "standard_only"})))
    call.service_tier = *tier;
  // The following fields are accepted without an effect. Some are for the sender's records. Some are about caching,
  // which is always on. Some request edits of the history, which is used as it was sent.
  read_metadata(r);
  r.pass_over({"cache_control", "context_management", "speed"});
  r.refuse("container", "this server runs no code");
  r.refuse("mcp_servers", "this server calls no others", {Json::array()});
  ZRT_CHECK_OK(r.finish());
  chat.messages = conversation.chat().take_messages();
  q.conversation = std::make_shared<const Conversation>(std::move(chat));
  call.requests.push_back(std::move(q));
  return call;
}

}  // namespace zinc_rt::server
