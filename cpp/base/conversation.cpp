#include "base/conversation.h"

#include <utility>

#include "base/error.h"
#include "base/strict_json.h"

namespace zinc_rt {

Result<Conversation> read_conversation(std::string_view messages, std::string_view tools, std::string_view variables) {
  using Json = nlohmann::ordered_json;
  const auto read = [](const char* field, std::string_view text, Json::value_t type) -> Result<Json> {
    auto value = read_any_json(text);
    if (value && value->type() == type) return *std::move(value);
    return fail({StatusCode::kInvalidArgument, field}, "[chat_template] {} is not a JSON {}", field,
                type == Json::value_t::array ? "list" : "object");
  };
  Conversation out;
  ZRT_TRY(out.messages, read("messages", messages, Json::value_t::array));
  if (!tools.empty()) {
    ZRT_TRY(out.tools, read("tools", tools, Json::value_t::array));
  }
  if (!variables.empty()) {
    ZRT_TRY(out.variables, read("chat_template_kwargs", variables, Json::value_t::object));
  }
  return out;
}

bool has_messages(const Request& request) {
  return request.messages.has_value() || request.conversation != nullptr;
}

bool has_tools(const Request& request) {
  return request.conversation != nullptr ? !request.conversation->tools.is_null() : request.tools.has_value();
}

Result<Conversation> take_conversation(Request& request) {
  const auto shared = std::exchange(request.conversation, nullptr);
  if (shared != nullptr) return *shared;
  const auto take = [](std::optional<std::string>& text) {
    return std::exchange(text, std::nullopt).value_or(std::string());
  };
  const auto messages = take(request.messages), tools = take(request.tools),
             variables = take(request.chat_template_kwargs);
  return read_conversation(messages, tools, variables);
}

std::size_t text_bytes(const nlohmann::ordered_json& value) {
  // Estimates of the bytes that a pair of quotes or brackets takes, and of those that a number takes.
  constexpr std::size_t kPunctuation = 2, kNumber = 8;
  if (value.is_string()) return value.get_ref<const std::string&>().size() + kPunctuation;
  if (value.is_binary()) return value.get_binary().size();
  if (!value.is_structured()) return kNumber;
  std::size_t bytes = kPunctuation;
  for (const auto& [key, item] : value.items())
    bytes += 1 + (value.is_object() ? key.size() + 1 + kPunctuation : 0) + text_bytes(item);
  return bytes;
}

}  // namespace zinc_rt
