#include "output/role_order.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace zinc_rt::output {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReasoning = "reasoning_content";

bool has_role(const Json& message, std::string_view role) {
  if (!message.is_object()) return false;
  const auto found = message.find("role");
  return found != message.end() && found->is_string() && found->get_ref<const std::string&>() == role;
}

std::string joined(std::string first, const std::string& second) {
  if (!first.empty() && !second.empty()) first += kBetweenMessages;
  return first += second;
}

// Appends what `next` says to `message`, which has the same role.
void append_message(Json& message, Json&& next) {
  message["content"] =
      joined(text_of_content(message.value("content", Json())), text_of_content(next.value("content", Json())));
  if (const auto thought = next.find(kReasoning); thought != next.end() && thought->is_string())
    message[kReasoning] = joined(text_of_content(message.value(kReasoning, Json())), thought->get<std::string>());
  if (const auto calls = next.find("tool_calls"); calls != next.end() && calls->is_array()) {
    Json& all = message["tool_calls"];
    if (!all.is_array()) all = Json::array();
    for (Json& call : *calls) all.push_back(std::move(call));
  }
}

}  // namespace

RoleOrder probe_role_order(const Render& render, const ContentForms& forms) {
  const auto shows = [&](std::initializer_list<std::string_view> roles) {
    Json messages = Json::array();
    for (const auto role : roles)
      messages.push_back({{"role", role}, {"content", "zrt text " + std::to_string(messages.size())}});
    const std::size_t n = messages.size();
    fit_content(messages, forms);
    const auto text = render(messages.dump(), "");
    for (std::size_t i = 0; i < n; ++i)
      if (!text || !text->contains("zrt text " + std::to_string(i))) return false;
    return true;
  };
  RoleOrder order;
  if (!shows({"user"})) return order;
  if (!shows({"system", "user"}))
    order.system = SystemPlaces::kNowhere;
  else if (!shows({"system", "system", "user", "assistant", "system", "user"}))
    order.system = SystemPlaces::kFirst;
  order.takes_user_runs = shows({"user", "user"});
  if (shows({"user", "assistant", "user"}))
    order.takes_assistant_runs = shows({"user", "assistant", "assistant", "user"});
  return order;
}

void fit_role_order(Json& messages, const RoleOrder& order) {
  if (!messages.is_array()) return;
  Json out = Json::array();
  for (Json& message : messages) {
    if (has_role(message, "system") && order.system != SystemPlaces::kAnywhere) {
      const bool is_first = out.empty() || (out.size() == 1 && has_role(out[0], "system"));
      if (order.system == SystemPlaces::kNowhere || !is_first) message["role"] = "user";
    }
    if (has_role(message, "user") && !order.takes_user_after_result && !out.empty() && has_role(out.back(), "tool"))
      out.push_back({{"role", "assistant"}, {"content", kBehindResult}});
    const bool is_run = !out.empty() && ((has_role(message, "system") && order.system == SystemPlaces::kFirst) ||
                                         (has_role(message, "user") && !order.takes_user_runs) ||
                                         (has_role(message, "assistant") && !order.takes_assistant_runs));
    if (is_run && out.back().is_object() && out.back().value("role", Json()) == message["role"])
      append_message(out.back(), std::move(message));
    else
      out.push_back(std::move(message));
  }
  messages = std::move(out);
}

}  // namespace zinc_rt::output
