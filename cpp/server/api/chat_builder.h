// ChatBuilder builds the messages of a chat, in the form that templates take, from the blocks and items of other APIs
// (Anthropic's, Responses).
// Thread rule: one thread at a time.
#pragma once

#include <functional>
#include <string>

#include "server/api/body_reader.h"

namespace zinc_rt::server {

class ChatBuilder {
 public:
  // Appends a text to the last message, if it is still open and has this role; otherwise begins a message. The texts of
  // one message are joined by line feeds, as the parts of a chat message are.
  void text(const char* role, const std::string& text);
  // reasoning() and call() add to the last message if it is the assistant's. Otherwise they begin a message of the
  // assistant.
  void reasoning(const std::string& text);
  void call(const std::string& id, const std::string& name, Json arguments);
  // Adds a message of role "tool", the result of the call `id`.
  void result(const std::string& id, const std::string& text);
  // Ends the last message, so that the next text begins a new message even if it has the same role.
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

// ChatReader holds functions that the readers of APIs other than OpenAI's chat share. They report errors to `body`.
class ChatReader {
 public:
  explicit ChatReader(BodyReader& body) : body_(body) {}
  ChatBuilder& chat() { return chat_; }

 protected:
  // Reports an error about a value in the body. A null value means that the value is missing.
  void wrong(const std::string& at, const Json& value, const std::string& wanted);
  // Returns the text member `name` of an object in the body. If it is missing, reports an error and returns an empty
  // text.
  std::string string_in(const Json& object, const char* name, const std::string& at);
  // Returns the text if `content` is a text. If it is a list, returns the texts of its elements joined by line feeds.
  // `part` returns the text of an element; its second argument is the element's place in the body.
  std::string joined(const Json& content, const std::string& at, const char* wanted,
                     const std::function<std::string(const Json&, const std::string&)>& part);

  BodyReader& body_;
  ChatBuilder chat_;
};

// Reads the body's tools into `chat`, in the form of OpenAI's chats. `read` converts the tool at a position, or returns
// null for a tool that is not passed to the model.
void read_tools(BodyReader& body, Conversation& chat,
                const std::function<Json(const Json& entry, const std::string& at)>& read);
// Returns a tool in the form of OpenAI's chats. `schema` is the name of the field that holds the parameters' schema.
Json chat_tool(BodyReader& tool, const char* schema);

}  // namespace zinc_rt::server
