// Puts a chat's messages into the form that a model's template takes.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "output/format.h"

namespace zinc_rt {

// EngineOptions::tools: the only format in which the engine can show tools itself.
inline constexpr std::string_view kOwnTools = "hermes";

// Adapts a chat's history to its template. `messages`: a list; only messages in the API's form are changed. `tools`: a
// list, or null.
// - Arguments of calls get the form that the template takes: the original text if it prints that, else an object or its
//   text. A text that is not an object becomes an object with this text in it.
// - Ids of calls become ids of 9 letters and digits if the template demands that.
// - Calls that the template would leave out are written into the message's text.
// - With `own_tools` the system message describes the tools, and calls and their results are written as text.
// - Content gets the form that the template takes (output/content_form.h). Error: a part that is not text.
Status fit_history(nlohmann::ordered_json& messages, const nlohmann::ordered_json* tools,
                   const output::TemplateTraits& traits, std::string_view own_tools);

}  // namespace zinc_rt
