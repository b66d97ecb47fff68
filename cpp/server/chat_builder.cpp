#include "server/chat_builder.h"

#include <fmt/format.h>

namespace zinc_rt::server {

Json& ChatBuilder::open(const char* role) {
  if (!is_open_ || messages_.back()["role"] != role) messages_.push_back(Json{{"role", role}, {"content", ""}});
  is_open_ = true;
  return messages_.back();
}

void ChatBuilder::text(const char* role, const std::string& text) {
  auto& content = open(role)["content"].get_ref<std::string&>();
  if (!content.empty() && !text.empty()) content += '\n';
  content += text;
}

void ChatBuilder::reasoning(const std::string& text) {
  auto& message = open("assistant");
  if (text.empty()) return;
  auto& own = message["reasoning_content"];
  own = own.is_string() ? own.get<std::string>() + "\n" + text : text;
}

void ChatBuilder::call(const std::string& id, const std::string& name, Json arguments) {
  open("assistant")["tool_calls"].push_back(
      Json{{"id", id}, {"type", "function"}, {"function", Json{{"name", name}, {"arguments", std::move(arguments)}}}});
}

void ChatBuilder::result(const std::string& id, const std::string& text) {
  messages_.push_back(Json{{"role", "tool"}, {"content", text}, {"tool_call_id", id}});
  is_open_ = false;
}

void ChatBuilder::system_first(const std::string& text) {
  if (!messages_.empty() && messages_[0]["role"] == "system") {
    auto& content = messages_[0]["content"].get_ref<std::string&>();
    content = content.empty() ? text : text + "\n" + content;
    return;
  }
  messages_.insert(messages_.begin(), Json{{"role", "system"}, {"content", text}});
}

std::string place(const std::string& at, std::size_t i) {
  return fmt::format("{}[{}]", at, i);
}

void wrong_at(BodyReader& body, const std::string& at, const Json& value, const std::string& wanted) {
  body.wrong(at.c_str(),
             value.is_null() ? wanted + " wanted" : fmt::format("{} is given, {} wanted", show(value), wanted));
}

std::string string_at(BodyReader& body, const Json& object, const char* name, const std::string& at) {
  const auto value = object.find(name);
  if (value != object.end() && value->is_string()) return value->get<std::string>();
  wrong_at(body, at + "." + name, value == object.end() ? Json() : *value, "a text");
  return {};
}

Json chat_tool(const std::string& name, const Json* description, const Json* parameters, const Json* strict) {
  Json function{{"name", name}};
  if (description != nullptr) function["description"] = *description;
  function["parameters"] =
      parameters != nullptr ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
  if (strict != nullptr) function["strict"] = *strict;
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

}  // namespace zinc_rt::server
