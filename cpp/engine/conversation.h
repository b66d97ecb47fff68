// The input of a chat template as JSON values. The JSON texts of the public API are parsed into it once.
// Thread rule: plain values.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt {

struct Conversation {
  nlohmann::ordered_json messages;   // a list
  nlohmann::ordered_json tools;      // a list; null if the request has no tools
  nlohmann::ordered_json variables;  // an object: additional variables for the template
};

// `tools` and `variables` may be empty texts. Errors: kInvalidArgument with the name of the argument that is not JSON
// or has the wrong type.
Result<Conversation> read_conversation(std::string_view messages, std::string_view tools, std::string_view variables);

}  // namespace zinc_rt
