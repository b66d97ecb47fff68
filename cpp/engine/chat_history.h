// Makes the messages of a chat such as a model's template takes them.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "output/format.h"

namespace zinc_rt {

// EngineOptions::tools: the only format in which the engine can show tools itself.
inline constexpr std::string_view kOwnTools = "hermes";

// `messages`: a list, of which only what has the form of the API is changed. `tools`: a list, or null.
// - Arguments of calls become what the template takes: their text as it came where it prints that, else an object or its
//   text. A text that is no object becomes an object with this text in it.
// - Ids of calls become those of 9 letters and digits that some templates demand.
// - Calls that the template leaves out are written into the message's text.
// - With `own_tools` the tools are described in the system message, calls and their results are written as text.
// - Content gets the form that the template takes (output/content_form.h). Error: a part that is no text.
Status fit_history(nlohmann::ordered_json& messages, const nlohmann::ordered_json* tools,
                   const output::TemplateTraits& traits, std::string_view own_tools);

}  // namespace zinc_rt
