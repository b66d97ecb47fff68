// Finds the form of message content that a chat template accepts: a text, a list of parts ({"type": "text", "text":
// ...}), or either. A template may accept different forms for different roles. With the wrong form most templates drop
// the content or write the list's notation into the prompt, without an error.
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
  kText,     // the template accepts only a text
  kParts,    // the template accepts only a list of parts
  kOnePart,  // the template accepts a list, but reads only its first part
  kBoth,     // the template accepts a text and a list, and renders both as intended
};

enum class Role : std::uint8_t { kSystem, kUser, kAssistant, kTool };
inline constexpr std::array<std::string_view, 4> kRoleNames{"system", "user", "assistant", "tool"};

// Holds the form of content for each role, indexed by Role.
using ContentForms = std::array<ContentForm, kRoleNames.size()>;

// The text that is inserted between parts when they are joined to one text.
inline constexpr std::string_view kBetweenParts = "\n";

// Finds the forms that a template accepts, by rendering test conversations. A role for which it accepts no form gets
// the form of user messages, or kText if user messages have none either.
ContentForms probe_content(const Render& render);

// Converts each message's content to the form for its role. A text becomes a list of one part. A list becomes one text,
// with kBetweenParts between the parts. With kBoth the content is not changed, because the template then writes parts
// as its model was trained. Content that is neither a text nor a list is not changed. If the form is a list, missing
// content becomes a list of one empty part. REQUIRES: check_content(messages) succeeded.
void fit_content(nlohmann::ordered_json& messages, const ContentForms& forms);
// Checks that all content is text. Errors: kInvalidArgument, with the position, for a part that is not text.
Status check_content(const nlohmann::ordered_json& messages);

// Returns the text of a message's content, with kBetweenParts between parts. Returns an empty text if it has none.
std::string text_of_content(const nlohmann::ordered_json& content);
// Replaces a message's content by its text and returns it.
std::string& content_as_text(nlohmann::ordered_json& message);
// Returns the last text of a message's content: the content itself, or the text of its last part. Returns null if the
// content has no text.
std::string* end_of_content(nlohmann::ordered_json& content);

}  // namespace zinc_rt::output
