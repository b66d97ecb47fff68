#include "server/api/chat_builder.h"

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

void ChatReader::wrong(const std::string& at, const Json& value, const std::string& wanted) {
  body_.wrong(at.c_str(),
              value.is_null() ? wanted + " wanted" : fmt::format("{} is given, {} wanted", show(value), wanted));
}

std::string ChatReader::string_in(const Json& object, const char* name, const std::string& at) {
  const auto value = object.find(name);
  if (value != object.end() && value->is_string()) return value->get<std::string>();
  wrong(at + "." + name, value == object.end() ? Json() : *value, "a text");
  return {};
}

std::string ChatReader::joined(const Json& content, const std::string& at, const char* wanted,
                               const std::function<std::string(const Json&, const std::string&)>& part) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) wrong(at, content, wanted);
  for (std::size_t i = 0; i < content.size() && body_.is_good(); ++i)
    text += (i == 0 ? "" : "\n") + part(content[i], place(at, i));
  return text;
}

void read_tools(BodyReader& body, Conversation& chat,
                const std::function<Json(const Json& entry, const std::string& at)>& read) {
  constexpr std::size_t kMax = 512;
  const Json* tools = body.fields().get("tools");
  if (tools == nullptr) return;
  if (!tools->is_array() || tools->size() > kMax)
    return body.wrong("tools", fmt::format("{} is given, a list of at most {} tools wanted", show(*tools), kMax));
  Json out = Json::array();
  for (std::size_t i = 0; i < tools->size() && body.is_good(); ++i)
    if (Json tool = read((*tools)[i], place("tools", i)); !tool.is_null()) out.push_back(std::move(tool));
  if (!out.empty()) chat.tools = std::move(out);
}

Json chat_tool(BodyReader& tool, const char* schema) {
  const auto name = tool.string("name", 256);
  if (!name || name->empty()) tool.wrong("name", "a name of 1 to 256 bytes wanted");
  Json function{{"name", name.value_or("")}};
  if (const Json* description = tool.fields().get("description")) function["description"] = *description;
  const Json* parameters = tool.fields().get(schema);
  function["parameters"] =
      parameters != nullptr ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
  if (const Json* strict = tool.fields().get("strict")) function["strict"] = *strict;
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

}  // namespace zinc_rt::server
