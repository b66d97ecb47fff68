// Conversation holds the input of a chat template as JSON values. Each JSON text of the public API is parsed once, by
// read_conversation(), when a request is submitted.
// Thread rule: plain values.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt {

struct Conversation {
  nlohmann::ordered_json messages;   // a list of messages
  nlohmann::ordered_json tools;      // a list; null if the request has no tools
  nlohmann::ordered_json variables;  // an object: further variables for the template
};

// Parses the JSON texts of a request. `tools` and `variables` may be empty. Errors: kInvalidArgument, with the name of
// the argument, if one is not JSON or has the wrong type.
Result<Conversation> read_conversation(std::string_view messages, std::string_view tools, std::string_view variables);

}  // namespace zinc_rt
