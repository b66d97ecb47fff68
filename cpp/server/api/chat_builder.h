// Builds a chat's messages, in the form that templates take, from the blocks and items of other APIs.
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <string>

#include "server/api/body_reader.h"

namespace zinc_rt::server {

class ChatBuilder {
 public:
  // Appends a text to the open message of that role, or opens one. The texts of one message are joined by line feeds,
  // as in chats.
  void text(const char* role, const std::string& text);
  // For the assistant's message. They open one if the last message is not the assistant's.
  void reasoning(const std::string& text);
  void call(const std::string& id, const std::string& name, Json arguments);
  // A message of role tool.
  void result(const std::string& id, const std::string& text);
  // Ends the message. The next text begins a new one, whatever its role.
  void close() { is_open_ = false; }
  // Puts a text before all other system texts.
  void system_first(const std::string& text);

  bool is_empty() const { return messages_.empty(); }
  Json take_messages() { return std::move(messages_); }

 private:
  Json& open(const char* role);
  Json messages_ = Json::array();
  bool is_open_ = false;
};

// "at[i]": the position in a body, for errors.
std::string place(const std::string& at, std::size_t i);

// Shared by the readers of other APIs' conversations. The first error goes to the body's reader.
class ChatReader {
 public:
  explicit ChatReader(BodyReader& body) : body_(body) {}
  ChatBuilder& chat() { return chat_; }

 protected:
  // Reports an error about a value in the body; null: it is missing.
  void wrong(const std::string& at, const Json& value, const std::string& wanted);
  // The text member `name` of an object in the body. If it is missing, reports an error and returns an empty text.
  std::string string_in(const Json& object, const char* name, const std::string& at);
  // A text, or a list's texts joined by line feeds; `part` reads the text of an entry, given its position.
  std::string joined(const Json& content, const std::string& at, const char* wanted,
                     const std::function<std::string(const Json&, const std::string&)>& part);

  BodyReader& body_;
  ChatBuilder chat_;
};

// The body's tools in the form of chats. `read` converts one entry, given its position; it returns null to leave the
// entry out.
void read_tools(BodyReader& body, Conversation& chat,
                const std::function<Json(const Json& entry, const std::string& at)>& read);
// A function in the form of chats. `schema`: the field with its parameters.
Json chat_tool(BodyReader& tool, const char* schema);

}  // namespace zinc_rt::server
