// Finds the order of roles that a chat template accepts, and brings messages into it. Templates refuse or leave out what
// they do not expect: a system message that is not the first, two messages of one role in a row, or a user's message
// behind a tool's result. Agents send all of these.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "output/content_form.h"
#include "output/probe.h"

namespace zinc_rt::output {

// Names the places at which a template renders a system message.
enum class SystemPlaces : std::uint8_t { kAnywhere, kFirst, kNowhere };

struct RoleOrder {
  SystemPlaces system = SystemPlaces::kAnywhere;
  bool takes_user_runs = true;          // whether the template renders two messages of the user in a row
  bool takes_assistant_runs = true;     // whether the template renders two messages of the assistant in a row
  bool takes_user_after_result = true;  // whether the template renders a user's message behind a tool's result
};

// The text that is inserted between messages when they are joined to one.
inline constexpr std::string_view kBetweenMessages = "\n\n";
// The assistant's text that is inserted between a tool's result and a user's message. It is not empty, because some
// templates refuse empty answers.
inline constexpr const char* kBehindResult = "OK.";

// Finds the order by rendering test conversations, whose content has these forms; the caller finds
// takes_user_after_result, for which it must know how the template takes calls. A template that renders no message of
// a user is taken to accept everything, so that its own error is reported.
RoleOrder probe_role_order(const Render& render, const ContentForms& forms);

// Brings messages into the order. System messages at the beginning become one. Other system messages become messages of
// the user, at their place, so that the beginning of the conversation stays the same from turn to turn. Messages of one
// role in a row become one, if the template takes no such row: texts and reasoning are joined with kBetweenMessages, and
// calls follow each other. kBehindResult comes before a user's message that the template does not take behind a result.
void fit_role_order(nlohmann::ordered_json& messages, const RoleOrder& order);

}  // namespace zinc_rt::output
