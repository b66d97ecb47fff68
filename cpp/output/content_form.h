// Finds the form of message content that a chat template takes: a text, a list of parts ({"type": "text", "text":
// ...}), or either. One template may differ by role. With the wrong form most templates drop the content or write the
// list's notation into the prompt, without an error.
// Thread rule: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "output/probe.h"
#include "zinc_rt/status.h"

namespace zinc_rt::output {

enum class ContentForm : std::uint8_t {
  kText,     // only a text
  kParts,    // only a list
  kOnePart,  // a list of which only the first part is read
  kBoth,     // both, each rendered as intended
};

enum class Role : std::uint8_t { kSystem, kUser, kAssistant, kTool };
inline constexpr std::array<std::string_view, 4> kRoleNames{"system", "user", "assistant", "tool"};

// The form for each role.
using ContentForms = std::array<ContentForm, kRoleNames.size()>;

// Separates parts that are joined to one text.
inline constexpr std::string_view kBetweenParts = "\n";

// Tries a template. A role for which it accepts no form gets the form of user messages, or kText if user messages have
// none either.
ContentForms probe_content(const Render& render);

// Converts each message's content to the form for its role. A text becomes a list of one part. A list becomes one text,
// with kBetweenParts between the parts. kBoth keeps both, because the template then writes parts as its model was
// trained. Content that is neither is not changed. If the form is a list, missing content becomes a list of one empty
// part. REQUIRES: check_content(messages).
void fit_content(nlohmann::ordered_json& messages, const ContentForms& forms);
// Errors: kInvalidArgument, with the position, if a part of a message's content is not text.
Status check_content(const nlohmann::ordered_json& messages);

// Returns the text of a message's content, with kBetweenParts between parts; empty if it has no text.
std::string text_of_content(const nlohmann::ordered_json& content);
// Turns a message's content into a text and returns it.
std::string& content_as_text(nlohmann::ordered_json& message);
// Returns the last text of a message's content: the content itself, or the text of its last part. Null if there is
// none.
std::string* end_of_content(nlohmann::ordered_json& content);

}  // namespace zinc_rt::output
