// The body of /v1/messages, Anthropic's API.
#include "base/error.h"
#include "server/body_reader.h"
#include "server/chat_builder.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxText = 64u << 20;
// Claude Code puts a line in front of the system prompt that changes with each request, so that no prefix of it could
// be found again.
constexpr std::string_view kBilling = "x-anthropic-billing-header:";

// Reads one conversation. The first complaint goes to the body's reader.
class MessagesReader {
 public:
  explicit MessagesReader(BodyReader& body) : body_(body) {}

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
      const Json& message = list[i];
      if (!message.is_object()) return wrong(at, message, "an object");
      const auto role = message.find("role"), content = message.find("content");
      if (role == message.end() || (*role != "user" && *role != "assistant" && *role != "system"))
        return wrong(at + ".role", role == message.end() ? Json() : *role, "user, assistant or system");
      if (content == message.end()) return wrong(at + ".content", Json(), "a text or a list of blocks");
      chat_.close();
      this->content(role->get<std::string>(), *content, at + ".content");
    }
  }

  const ChatBuilder& chat() const { return chat_; }

 private:
  void content(const std::string& role, const Json& content, const std::string& at) {
    if (content.is_string()) return chat_.text(role.c_str(), content.get<std::string>());
    if (!content.is_array()) return wrong(at, content, "a text or a list of blocks");
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
      const auto text = content == block.end() ? std::string() : joined(*content, at + ".content");
      return chat_.result(string_in(block, "tool_use_id", at), text);
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
      if (name == "redacted_thinking") return;  // there is nothing in it that a template could show
    }
    wrong(at + ".type", *type,
          role == "user"        ? "text or tool_result (the models here read text alone)"
          : role == "assistant" ? "text, thinking or tool_use"
                                : "text");
  }

  std::string text_of(const Json& block, const std::string& at) {
    if (!block.is_object() || block.value("type", Json()) != "text") {
      wrong(at, block, "a block of type text (the models here read text alone)");
      return {};
    }
    return string_in(block, "text", at);
  }

  // A tool's result: a text, or blocks of text.
  std::string joined(const Json& content, const std::string& at) {
    if (content.is_string()) return content.get<std::string>();
    if (content.is_null()) return {};
    std::string text;
    if (!content.is_array()) {
      wrong(at, content, "a text or a list of text blocks");
      return text;
    }
    for (std::size_t i = 0; i < content.size() && body_.is_good(); ++i)
      text += (i == 0 ? "" : "\n") + text_of(content[i], place(at, i));
    return text;
  }

  std::string string_in(const Json& object, const char* name, const std::string& at) {
    return string_at(body_, object, name, at);
  }
  void wrong(const std::string& at, const Json& value, const std::string& wanted) {
    wrong_at(body_, at, value, wanted);
  }

  BodyReader& body_;
  ChatBuilder chat_;
};

// The tools as chats have them. Those that the server would have to run itself are refused.
Json read_messages_tools(BodyReader& r, const Json& tools) {
  Json out = Json::array();
  constexpr std::size_t kMax = 512;
  if (!tools.is_array() || tools.size() > kMax) {
    r.wrong("tools", fmt::format("{} is given, a list of at most {} tools wanted", show(tools), kMax));
    return out;
  }
  for (std::size_t i = 0; i < tools.size() && r.is_good(); ++i) {
    const Json& tool = tools[i];
    const auto at = place("tools", i);
    if (!tool.is_object()) {
      r.wrong(at.c_str(), show(tool) + " is given, an object wanted");
      break;
    }
    BodyReader one(tool, r.ignored(), at + ".");
    one.refuse("type", "this server runs no tools itself", {"custom"});
    const auto name = one.string("name", 256);
    if (!name || name->empty()) one.wrong("name", "a name of 1 to 256 bytes wanted");
    const Json* description = one.fields().get("description");
    const Json* schema = one.fields().get("input_schema");
    const Json* strict = one.fields().get("strict");
    if (schema == nullptr || !schema->is_object())
      one.wrong("input_schema", "a JSON schema, which is an object, wanted");
    static_cast<void>(one.fields().get("cache_control"));  // prefixes are kept anyway
    for (const char* harmless : {"eager_input_streaming", "input_examples", "allowed_callers"})
      static_cast<void>(one.fields().get(harmless));
    const auto is_hidden = one.boolean("defer_loading");
    if (const auto done = one.finish(); !done) {
      r.wrong(done.error());
      break;
    }
    // Tools of deferred loading are not shown until a search finds them, and there is none here: they stay hidden.
    if (!is_hidden.value_or(false)) out.push_back(chat_tool(*name, description, schema, strict));
  }
  return out;
}

void read_messages_choice(BodyReader& r, const Json& choice, Request& q) {
  if (!choice.is_object()) return r.wrong("tool_choice", show(choice) + " is given, an object with a type wanted");
  BodyReader one(choice, r.ignored(), "tool_choice.");
  const auto type = one.take(one.fields().get_choice("type", {"auto", "any", "tool", "none"}));
  const auto name = one.string("name", 256);
  if (type == "none") q.tools.reset();
  if ((type == "any" || type == "tool") && !q.tools) one.wrong("type", fmt::format("{} is given without tools", *type));
  if (type == "any") q.tool_choice = ToolChoice::kRequired;
  if (type == "tool") {
    q.tool_choice = ToolChoice::kNamed;
    q.named_tool = name.value_or("");
    if (!name) one.wrong("name", "it is missing");
  }
  if (one.boolean("disable_parallel_tool_use").value_or(false)) q.max_tool_calls = 1;
  if (const auto done = one.finish(); !done) r.wrong(done.error());
}

void read_messages_format(BodyReader& r, const Json& format, Request& q, GenerationCall& call) {
  if (!format.is_object()) return r.wrong("format", show(format) + " is given, an object with a type wanted");
  BodyReader one(format, r.ignored(), "output_config.format.");
  static_cast<void>(one.take(one.fields().get_choice("type", {"json_schema"})));
  const Json* schema = one.fields().get("schema");
  set_schema(one, "schema", schema == nullptr ? Json() : *schema, q, call);
  if (const auto done = one.finish(); !done) r.wrong(done.error());
}

}  // namespace

ApiResult<GenerationCall> parse_messages(const Json& body, const Request& defaults, Ignored ignored) {
  GenerationCall call;
  call.api = Api::kMessages;
  Request q = defaults;
  q.parse_output = true;
  BodyReader r(body, ignored);
  r.into(q.model, r.string("model", 4096));
  r.into(call.stream, r.boolean("stream"));
  read_max_tokens(r, q, {"max_tokens"}, Request::kAllThatFit, false);
  if (q.max_tokens == Request::kAllThatFit) r.wrong("max_tokens", "it is missing");
  read_temperature(r, q, 2);
  read_top_k(r, q);
  if (const Json* stops = r.fields().get("stop_sequences")) {
    if (!stops->is_array() || stops->size() > 16)
      r.wrong("stop_sequences", "a list of at most 16 texts wanted");
    else
      for (const Json& one : *stops)
        if (one.is_string() && !one.get_ref<const std::string&>().empty())
          q.stop.push_back(one.get<std::string>());
        else
          r.wrong("stop_sequences", show(one) + " is given, texts that are not empty wanted");
  }
  MessagesReader conversation(r);
  if (const Json* system = r.fields().get("system")) conversation.system(*system);
  if (const Json* messages = r.fields().get("messages"))
    conversation.messages(*messages);
  else
    r.wrong("messages", "it is missing");
  Json tools = Json::array();
  if (const Json* given = r.fields().get("tools")) tools = read_messages_tools(r, *given);
  if (!tools.empty()) q.tools = tools.dump();
  if (const Json* choice = r.fields().get("tool_choice")) read_messages_choice(r, *choice, q);
  Json variables = Json::object();
  // As in the API, a model thinks where it is asked to.
  variables["enable_thinking"] = false;
  if (const Json* thinking = r.fields().get("thinking")) {
    if (thinking->is_object()) {
      BodyReader one(*thinking, ignored, "thinking.");
      const auto type = one.take(one.fields().get_choice("type", {"enabled", "disabled", "adaptive"}));
      if (type) variables["enable_thinking"] = *type != "disabled";
      static_cast<void>(one.integer("budget_tokens", 0, 1 << 24));
      if (const auto display = one.take(one.fields().get_choice("display", {"summarized", "omitted"})))
        call.include_reasoning = *display != "omitted";
      if (const auto done = one.finish(); !done) r.wrong(done.error());
    } else {
      r.wrong("thinking", show(*thinking) + " is given, an object with a type wanted");
    }
  }
  if (const Json* output = r.fields().get("output_config")) {
    if (output->is_object()) {
      BodyReader one(*output, ignored, "output_config.");
      if (const auto effort = one.take(one.fields().get_choice("effort", {"low", "medium", "high", "xhigh", "max"})))
        variables["reasoning_effort"] = *effort;
      if (const Json* format = one.fields().get("format")) read_messages_format(one, *format, q, call);
      if (const auto done = one.finish(); !done) r.wrong(done.error());
    } else {
      r.wrong("output_config", show(*output) + " is given, an object wanted");
    }
  }
  q.chat_template_kwargs = variables.dump();
  if (const auto tier = r.take(r.fields().get_choice("service_tier", {"auto", "standard_only"})))
    call.service_tier = *tier;
  // What is about the sender's records, or about caches, which are used anyway; and edits of the history, which
  // is used as it comes.
  for (const char* name : {"metadata", "cache_control", "context_management", "speed"})
    static_cast<void>(r.fields().get(name));
  r.refuse("container", "this server runs no code");
  r.refuse("mcp_servers", "this server calls no others", {Json::array()});
  ZRT_CHECK_OK(r.finish());
  q.messages = conversation.chat().messages().dump();
  call.requests.push_back(std::move(q));
  return call;
}

}  // namespace zinc_rt::server
