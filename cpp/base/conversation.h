// A Conversation is one chat: the messages, tools and variables that a chat template is applied to. The readers of HTTP
// bodies build it from a client's JSON, and a Request carries it to the template. A caller of the C++ or Python API
// passes JSON texts instead, which take_conversation() parses.
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "zinc_rt/request.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

struct Conversation {
  nlohmann::ordered_json messages = nullptr;  // JSON array of message objects
  nlohmann::ordered_json tools = nullptr;     // JSON array that is not empty; null if the request has no tools
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();  // further variables for the template
};

// Parses JSON texts: an array of messages, an array of tools, an object of variables. `tools` and `variables` may be
// empty. Errors: kInvalidArgument if a text is not JSON of the right type; the error names the field.
Result<Conversation> read_conversation(std::string_view messages, std::string_view tools, std::string_view variables);

// Return whether the request contains messages, and whether it contains tools. A request may hold its chat as a
// Conversation or as JSON texts; both are checked.
bool has_messages(const Request& request);
bool has_tools(const Request& request);
// Takes the chat out of the request. A Conversation is copied, because several choices (n > 1) may share it. JSON texts
// are parsed. REQUIRES: has_messages(request). Errors: those of read_conversation.
Result<Conversation> take_conversation(Request& request);

// Returns an estimate of the length of the value's JSON text in bytes. The server counts it as memory that a request
// holds.
std::size_t text_bytes(const nlohmann::ordered_json& value);

}  // namespace zinc_rt
