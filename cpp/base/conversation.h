// One chat: the messages, tools and variables that a chat template is applied to. The readers of HTTP bodies build it
// from a client's JSON, and a Request carries it to the template. A caller of the C++ or Python API passes JSON texts
// instead; take_conversation() parses them.
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "zinc_rt/request.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

struct Conversation {
  nlohmann::ordered_json messages = nullptr;  // a JSON array
  nlohmann::ordered_json tools = nullptr;     // a JSON array that is not empty; null if the request has no tools
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();  // further variables for the template
};

// Parses JSON texts: arrays of messages and of tools, an object of variables. `tools` and `variables` may be empty.
// Errors: kInvalidArgument if a text is not JSON of the right type; the error names the field.
Result<Conversation> read_conversation(std::string_view messages, std::string_view tools, std::string_view variables);

// A request holds its chat as a Conversation or as JSON texts. These functions answer for both forms.
bool has_messages(const Request& request);
bool has_tools(const Request& request);
// Moves the chat out of the request. A Conversation is copied, because choices may share it; JSON texts are parsed.
// REQUIRES: has_messages(request). Errors: those of read_conversation.
Result<Conversation> take_conversation(Request& request);

// Estimates the length of the value's JSON text in bytes.
std::size_t text_bytes(const nlohmann::ordered_json& value);

}  // namespace zinc_rt
