// Builds the messages of a chat, as templates take them, from the blocks and items of other APIs.
// Thread rule: one thread at a time.
#pragma once

#include <string>

#include "server/body_reader.h"

namespace zinc_rt::server {

class ChatBuilder {
 public:
  // Appends a text to the message of that role that is open, or opens one. Texts of one message are joined by line
  // feeds, as in chats.
  void text(const char* role, const std::string& text);
  // Of the assistant's message: they open one if the last is not the assistant's.
  void reasoning(const std::string& text);
  void call(const std::string& id, const std::string& name, Json arguments);
  // A message of role tool.
  void result(const std::string& id, const std::string& text);
  // What follows begins a new message, whatever its role.
  void close() { is_open_ = false; }
  // Puts a text before all others of role system.
  void system_first(const std::string& text);

  bool is_empty() const { return messages_.empty(); }
  const Json& messages() const { return messages_; }

 private:
  Json& open(const char* role);
  Json messages_ = Json::array();
  bool is_open_ = false;
};

// "at[i]": where in a body a complaint is about.
std::string place(const std::string& at, std::size_t i);
// Complains about the value at a place of a body; null: it is missing.
void wrong_at(BodyReader& body, const std::string& at, const Json& value, const std::string& wanted);
// The text `name` of an object at a place of a body; empty, with a complaint, where there is none.
std::string string_at(BodyReader& body, const Json& object, const char* name, const std::string& at);
// A function as chats have it, from its parts. `parameters` may be null.
Json chat_tool(const std::string& name, const Json* description, const Json* parameters, const Json* strict);

}  // namespace zinc_rt::server
