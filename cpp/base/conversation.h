// A chat as one value: what a chat template is applied to. Who reads a client's JSON builds it, and a Request carries
// it to the template. The JSON texts of the public API are read into it once.
// Thread rule: plain values.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "zinc_rt/request.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

struct Conversation {
  nlohmann::ordered_json messages = nullptr;                            // a list
  nlohmann::ordered_json tools = nullptr;                               // a list that has entries; null: none are given
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();  // further ones of the template
};

// `tools` and `variables` may be empty. Errors: kInvalidArgument that names what is no JSON of its kind.
Result<Conversation> read_conversation(std::string_view messages, std::string_view tools, std::string_view variables);

// What the request's members say, whichever of its two forms the chat has.
bool has_messages(const Request& request);
bool has_tools(const Request& request);
// The chat of a request, which has none afterwards. A shared one is copied, texts are read. REQUIRES: has_messages.
// Errors: those of read_conversation.
Result<Conversation> take_conversation(Request& request);

// About as many bytes as the value has as JSON text.
std::size_t text_bytes(const nlohmann::ordered_json& value);

}  // namespace zinc_rt
