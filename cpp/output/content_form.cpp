#include "output/content_form.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace zinc_rt::output {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFirst = "zrt first", kSecond = "zrt second", kInPart = "zrt part";

Json part(std::string_view text) {
  return Json{{"type", "text"}, {"text", text}};
}

// Returns a part with an extra member. If that member appears in the output, the template prints the list itself
// instead of the parts' texts.
Json marked_part(std::string_view text) {
  auto out = part(text);
  out["zrt_part"] = kInPart;
  return out;
}

// Returns a conversation in which the message of `role` has this content.
Json conversation_with(Role role, Json content) {
  Json messages = Json::array();
  if (role == Role::kSystem) messages.push_back({{"role", "system"}, {"content", content}});
  messages.push_back({{"role", "user"}, {"content", role == Role::kUser ? content : Json("zrt question")}});
  if (role == Role::kAssistant) {
    messages.push_back({{"role", "assistant"}, {"content", content}});
    messages.push_back({{"role", "user"}, {"content", "zrt question"}});
  }
  if (role == Role::kTool) {
    messages.push_back(Json{{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({probe_call(true)})}});
    messages.push_back(
        {{"role", "tool"}, {"name", kProbeName}, {"tool_call_id", kProbeCallId}, {"content", std::move(content)}});
  }
  return messages;
}

// Tries a form of content for one role. Messages of all other roles have the forms that were found before.
class Trial {
 public:
  Trial(const Render& render, Role role, const ContentForms& forms) : render_(render), role_(role), forms_(forms) {
    forms_[static_cast<std::size_t>(role)] = ContentForm::kBoth;
  }

  std::optional<ContentForm> form() const {
    const bool text = shows(Json(kFirst), {kFirst});
    const bool parts = shows(Json::array({marked_part(kFirst), marked_part(kSecond)}), {kFirst, kSecond});
    if (text && parts) return ContentForm::kBoth;
    if (text || parts) return text ? ContentForm::kText : ContentForm::kParts;
    if (shows(Json::array({marked_part(kFirst)}), {kFirst})) return ContentForm::kOnePart;
    return std::nullopt;
  }

 private:
  bool shows(const Json& content, std::initializer_list<std::string_view> wanted) const {
    auto messages = conversation_with(role_, content);
    fit_content(messages, forms_);
    const bool is_tool = role_ == Role::kTool;
    auto text = render_(messages.dump(), is_tool ? kProbeTools : "");
    const auto is_shown = [&] {
      return text && !text->contains(kInPart) &&
             std::ranges::all_of(wanted, [&](std::string_view one) { return text->contains(one); });
    };
    if (is_shown() || !is_tool) return is_shown();
    messages[1]["tool_calls"][0] = probe_call(false);
    text = render_(messages.dump(), kProbeTools);
    return is_shown();
  }

  const Render& render_;
  const Role role_;
  ContentForms forms_;
};

Json as_list(const Json& content) {
  if (content.is_string()) return Json::array({part(content.get_ref<const std::string&>())});
  if (content.is_null() || content.empty()) return Json::array({part("")});
  return content;
}

bool is_text_part(const Json& one) {
  return one.is_object() && one.contains("text") && one["text"].is_string() &&
         one.value("type", Json("text")) == "text";
}

}  // namespace

std::string text_of_content(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string out;
  if (!content.is_array()) return out;
  bool is_first = true;
  for (const Json& one : content) {
    if (!is_text_part(one)) continue;
    if (!std::exchange(is_first, false)) out += kBetweenParts;
    out += one["text"].get_ref<const std::string&>();
  }
  return out;
}

std::string& content_as_text(Json& message) {
  Json& content = message["content"];
  if (!content.is_string()) content = text_of_content(content);
  return content.get_ref<std::string&>();
}

std::string* end_of_content(Json& content) {
  if (content.is_string()) return content.get_ptr<std::string*>();
  if (!content.is_array() || content.empty() || !is_text_part(content.back())) return nullptr;
  return content.back()["text"].get_ptr<std::string*>();
}

Status check_content(const Json& messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) continue;
    const auto content = messages[i].find("content");
    for (std::size_t k = 0; content != messages[i].end() && content->is_array() && k < content->size(); ++k)
      if (!is_text_part((*content)[k]))
        return fail(StatusCode::kInvalidArgument,
                    "[request] messages[{}].content[{}] is no part of type \"text\" with a text; the models here read "
                    "text alone",
                    i, k);
  }
  return {};
}

void fit_content(Json& messages, const ContentForms& forms) {
  for (Json& message : messages) {
    const auto role = message.is_object() ? message.find("role") : message.end();
    if (!message.is_object() || role == message.end() || !role->is_string()) continue;
    const auto name = std::ranges::find(kRoleNames, role->get_ref<const std::string&>());
    if (name == kRoleNames.end()) continue;
    const ContentForm form = forms[static_cast<std::size_t>(name - kRoleNames.begin())];
    const auto content = message.find("content");
    const bool is_list = content != message.end() && content->is_array();
    if (form == ContentForm::kText && is_list) content_as_text(message);
    if (form != ContentForm::kParts && form != ContentForm::kOnePart) continue;
    Json& there = message["content"];
    if (!there.is_null() && !there.is_string() && !is_list) continue;
    if (form == ContentForm::kOnePart) content_as_text(message);
    there = as_list(there);
  }
}

ContentForms probe_content(const Render& render) {
  ContentForms forms{};
  const auto form_of = [&](Role role) { return Trial(render, role, forms).form(); };
  const auto user = form_of(Role::kUser);
  forms.fill(user.value_or(ContentForm::kText));
  // The assistant's form is found before the tool's, because a tool's message follows a call in an assistant's message.
  for (const Role role : {Role::kSystem, Role::kAssistant, Role::kTool})
    if (const auto form = form_of(role)) forms[static_cast<std::size_t>(role)] = *form;
  return forms;
}

}  // namespace zinc_rt::output
