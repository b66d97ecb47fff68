// Builds the messages of a chat, as templates take them, from the blocks and items of other APIs.
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <string>

#include "server/api/body_reader.h"

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

// What the readers of other APIs' conversations share. The first complaint goes to the body's reader.
class ChatReader {
 public:
  explicit ChatReader(BodyReader& body) : body_(body) {}
  ChatBuilder& chat() { return chat_; }

 protected:
  // Complains about the value at a place of the body; null: it is missing.
  void wrong(const std::string& at, const Json& value, const std::string& wanted);
  // The text `name` of an object at a place of the body; empty, with a complaint, where there is none.
  std::string string_in(const Json& object, const char* name, const std::string& at);
  // A text, or the texts that `part` reads from a list's entries and their places, joined by line feeds.
  std::string joined(const Json& content, const std::string& at, const char* wanted,
                     const std::function<std::string(const Json&, const std::string&)>& part);

  BodyReader& body_;
  ChatBuilder chat_;
};

// The body's tools as chats have them: `read` gives that of an entry at a place, null where it is left out.
void read_tools(BodyReader& body, Request& request,
                const std::function<Json(const Json& entry, const std::string& at)>& read);
// A function as chats have it. `schema` is the field that has its parameters.
Json chat_tool(BodyReader& tool, const char* schema);

}  // namespace zinc_rt::server
