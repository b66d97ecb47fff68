// Builds a chat's messages, in the form that templates take, from the blocks and items of other APIs.
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <string>

#include "server/api/body_reader.h"

namespace zinc_rt::server {

class ChatBuilder {
 public:
  // Appends a text to the last message if that is open and has this role, else begins a message. The texts of one
  // message are joined by line feeds, as parts of a chat message are.
  void text(const char* role, const std::string& text);
  // Both add to the assistant's message. They begin one if the last message is not the assistant's.
  void reasoning(const std::string& text);
  void call(const std::string& id, const std::string& name, Json arguments);
  // Adds a message of role tool.
  void result(const std::string& id, const std::string& text);
  // Ends the last message, so that the next text begins a new one even if the role is the same.
  void close() { is_open_ = false; }
  // Inserts a text before all other system texts.
  void system_first(const std::string& text);

  bool is_empty() const { return messages_.empty(); }
  Json take_messages() { return std::move(messages_); }

 private:
  Json& open(const char* role);
  Json messages_ = Json::array();
  bool is_open_ = false;
};

// Returns "at[i]", a position in a body, for error messages.
std::string place(const std::string& at, std::size_t i);

// Helpers for the readers of APIs other than OpenAI's chat. They report errors to `body`.
class ChatReader {
 public:
  explicit ChatReader(BodyReader& body) : body_(body) {}
  ChatBuilder& chat() { return chat_; }

 protected:
  // Reports an error about a value in the body; null: it is missing.
  void wrong(const std::string& at, const Json& value, const std::string& wanted);
  // The text member `name` of an object in the body. If it is missing, reports an error and returns an empty text.
  std::string string_in(const Json& object, const char* name, const std::string& at);
  // Returns the text if `content` is a text. If it is a list, returns the texts of its entries joined by line feeds;
  // `part` returns the text of an entry at a position.
  std::string joined(const Json& content, const std::string& at, const char* wanted,
                     const std::function<std::string(const Json&, const std::string&)>& part);

  BodyReader& body_;
  ChatBuilder chat_;
};

// Reads the body's tools into `chat`, in the form of OpenAI's chats. `read` converts the entry at a position; it
// returns null to leave the entry out.
void read_tools(BodyReader& body, Conversation& chat,
                const std::function<Json(const Json& entry, const std::string& at)>& read);
// A function in the form of chats. `schema`: the field with its parameters.
Json chat_tool(BodyReader& tool, const char* schema);

}  // namespace zinc_rt::server
