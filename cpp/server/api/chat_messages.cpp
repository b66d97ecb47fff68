// Reads the messages and tools of a chat.
#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "server/api/generation_call.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMaxMessages = 8192, kMaxTools = 512;

// Returns what is wrong with a function's name; empty if it is valid. Names are restricted because they go into prompts
// and logs.
std::string_view complaint_about_name(const Json& name) {
  constexpr std::string_view kWanted = "a text of 1 to 256 bytes without control characters wanted";
  if (!name.is_string()) return kWanted;
  const auto& text = name.get_ref<const std::string&>();
  return text.empty() || text.size() > 256 || has_control_characters(text) ? kWanted : std::string_view();
}

// Checks a tool call in an assistant's message. Errors: 400.
ApiResult<void> check_call(const Json& call, const std::string& at) {
  if (!call.is_object()) return wrong_field(at, show(call) + " is given, an object with a function wanted");
  Fields fields(call, at + ".");
  if (const auto type = fields.get_choice("type", {"function"}); !type) return std::unexpected(type.error());
  if (const auto id = fields.get_string("id", 1024); !id) return std::unexpected(id.error());
  const Json* function = fields.get("function");
  if (function == nullptr || !function->is_object() || !function->contains("name"))
    return wrong_field(at + ".function", "an object with a name wanted");
  if (const auto complaint = complaint_about_name((*function)["name"]); !complaint.empty())
    return wrong_field(at + ".function.name", fmt::format("{} is given, {}", show((*function)["name"]), complaint));
  Fields of_function(*function, at + ".function.");
  const Json* arguments = of_function.get("arguments");
  if (arguments != nullptr && !arguments->is_string() && !arguments->is_object())
    return of_function.wrong("arguments", show(*arguments) + " is given, a JSON object, as text or as it is, wanted");
  return {};
}

}  // namespace

// A list in an assistant's message may also have refusals, which become texts.
ApiResult<Json> read_content(const Json& content, const std::string& role, const std::string& at) {
  if (content.is_string()) return content;
  if (!content.is_array()) return wrong_field(at, show(content) + " is given, a text or a list of parts wanted");
  Json parts = Json::array();
  for (std::size_t i = 0; i < content.size(); ++i) {
    const Json& part = content[i];
    const auto here = fmt::format("{}[{}]", at, i);
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string())
      return wrong_field(here, "a part is an object with a type");
    const char* field = role == "assistant" && part["type"] == "refusal" ? "refusal" : "text";
    if (part["type"] != field)
      return wrong_field(here + ".type", show(part["type"]) + " is not served: the models here read text alone");
    if (!part.contains(field) || !part[field].is_string()) return wrong_field(here + "." + field, "a text is wanted");
    parts.push_back({{"type", "text"}, {"text", part[field]}});
  }
  return parts;
}

ApiResult<Json> read_messages(const Json& messages, Ignored ignored) {
  if (!messages.is_array() || messages.empty() || messages.size() > kMaxMessages)
    return wrong_field("messages",
                       fmt::format("{} is given, a list of 1 to {} messages wanted", show(messages), kMaxMessages));
  Json out = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const auto at = fmt::format("messages[{}]", i);
    if (!message.is_object()) return wrong_field(at, show(message) + " is given, an object wanted");
    Fields fields(message, at + ".");
    ZRT_TRY(auto role, fields.get_choice("role", {"system", "developer", "user", "assistant", "tool"}));
    if (!role)
      return wrong_field(at + ".role", "it is missing; one of system, developer, user, assistant, tool wanted");
    if (*role == "developer") role = "system";
    Json one{{"role", *role}};
    const Json* calls = fields.get("tool_calls");
    if (calls != nullptr && (*role != "assistant" || !calls->is_array()))
      return wrong_field(at + ".tool_calls", "a list, in messages of the assistant, wanted");
    const Json* content = fields.get("content");
    if (content != nullptr) {
      ZRT_TRY(one["content"], read_content(*content, *role, at + ".content"));
    } else if (*role == "assistant") {
      one["content"] = "";  // because templates use `content` without testing whether it exists
    } else {
      return wrong_field(at + ".content", "it is missing");
    }
    if (calls != nullptr) {
      for (std::size_t k = 0; k < calls->size(); ++k)
        ZRT_CHECK_OK(check_call((*calls)[k], fmt::format("{}.tool_calls[{}]", at, k)));
      one["tool_calls"] = *calls;  // unchanged; the engine converts the arguments for the template
    }
    for (const char* name : {"name", "tool_call_id", "reasoning_content", "reasoning"}) {
      ZRT_TRY(auto text, fields.get_string(name, 16 << 20));
      if (text) one[name] = std::move(*text);
    }
    // An assistant's message may have a refusal in place of content. The refusal becomes the content, because templates
    // render only that.
    ZRT_TRY(const auto refusal, fields.get_string("refusal", 16 << 20));
    if (refusal && *role != "assistant") return fields.wrong("refusal", "only in messages of the assistant");
    if (refusal && !refusal->empty()) {
      Json& own = one["content"];
      if (own.is_array())
        own.push_back({{"type", "text"}, {"text", *refusal}});
      else
        own =
            own.get_ref<const std::string&>().empty() ? *refusal : own.get_ref<const std::string&>() + "\n" + *refusal;
    }
    // Clients send back the `annotations` of answers. Answers of this server have none.
    if (const Json* annotations = fields.get("annotations"); annotations != nullptr && *annotations != Json::array())
      return fields.wrong("annotations", show(*annotations) + " is not served: the models here read text alone");
    ZRT_CHECK_OK(fields.expect_no_others(ignored));
    out.push_back(std::move(one));
  }
  return out;
}

ApiResult<void> check_tools(const Json& tools) {
  if (!tools.is_array() || tools.size() > kMaxTools)
    return wrong_field("tools",
                       fmt::format("{} is given, a list of at most {} functions wanted", show(tools), kMaxTools));
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const Json& tool = tools[i];
    const auto at = fmt::format("tools[{}]", i);
    if (!tool.is_object() || !tool.contains("type") || tool["type"] != "function")
      return wrong_field(at + ".type", "an object of type \"function\" wanted");
    if (!tool.contains("function") || !tool["function"].is_object() || !tool["function"].contains("name"))
      return wrong_field(at + ".function", "an object with a name wanted");
    const Json& function = tool["function"];
    Fields fields(function, at + ".function.");
    if (const auto complaint = complaint_about_name(function["name"]); !complaint.empty())
      return fields.wrong("name", fmt::format("{} is given, {}", show(function["name"]), complaint));
    if (const auto description = fields.get_string("description"); !description)
      return std::unexpected(description.error());
    if (const auto strict = fields.get_bool("strict"); !strict) return std::unexpected(strict.error());
    const Json* parameters = fields.get("parameters");
    if (parameters != nullptr && !parameters->is_object())
      return fields.wrong("parameters", show(*parameters) + " is given, a JSON schema, which is an object, wanted");
  }
  return {};
}

}  // namespace zinc_rt::server
