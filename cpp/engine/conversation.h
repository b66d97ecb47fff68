// The input of a chat template, as values. The JSON texts of the public API are parsed once, into this.
// Thread rule: plain values.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt {

struct Conversation {
  nlohmann::ordered_json messages;   // a list
  nlohmann::ordered_json tools;      // a list; null: none are given
  nlohmann::ordered_json variables;  // further ones of the template, an object
};

// `tools` and `variables` may be empty. Errors: kInvalidArgument naming the argument that is not JSON of the right
// kind.
Result<Conversation> read_conversation(std::string_view messages, std::string_view tools, std::string_view variables);

}  // namespace zinc_rt
