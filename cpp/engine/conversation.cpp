#include "engine/conversation.h"

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
  Conversation out{{}, {}, Json::object()};
  ZRT_TRY(out.messages, read("messages", messages, Json::value_t::array));
  if (!tools.empty()) {
    ZRT_TRY(out.tools, read("tools", tools, Json::value_t::array));
  }
  if (!variables.empty()) {
    ZRT_TRY(out.variables, read("chat_template_kwargs", variables, Json::value_t::object));
  }
  return out;
}

}  // namespace zinc_rt
