// Rewrites a chat's messages into the form that the model's template accepts.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "output/format.h"

namespace zinc_rt {

// The value of EngineOptions::tools that makes the engine itself describe tools to a model whose template cannot.
// "hermes" is the only such format.
inline constexpr std::string_view kOwnTools = "hermes";

// Adapts a chat's history to its template. `messages` is a list; only messages in the API's form are changed. `tools`
// is a list or null.
// - The arguments of tool calls get the form that the template accepts. If the template prints the text as it is,
//   arguments stay the original text; else they become an object or the object's text. Arguments that are not a JSON
//   object become an object that holds their text.
// - The ids of calls become ids of 9 letters and digits if the template demands that.
// - Messages get the order of roles that the template accepts (output/role_order.h).
// - Calls that the template would leave out are written into the message's text.
// - If the template renders one call per message, each call gets a message of its own, with its result behind it.
// - If the template renders calls by the messages' metadata, calls and results get that form.
// - If `own_tools` is set, the system message describes the tools, and calls and their results are written as text.
// - Content gets the form that the template accepts (output/content_form.h).
// Errors: kInvalidArgument if a part of a message's content is not text.
Status fit_history(nlohmann::ordered_json& messages, const nlohmann::ordered_json* tools,
                   const output::TemplateTraits& traits, std::string_view own_tools);

}  // namespace zinc_rt
