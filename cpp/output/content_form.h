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
  kText,     // a text alone
  kParts,    // a list alone
  kOnePart,  // a list of which only the first part is read
  kBoth,     // each of them as it is meant
};

enum class Role : std::uint8_t { kSystem, kUser, kAssistant, kTool };
inline constexpr std::array<std::string_view, 4> kRoleNames{"system", "user", "assistant", "tool"};

// By role.
using ContentForms = std::array<ContentForm, kRoleNames.size()>;

// Stands between parts that are joined to one text.
inline constexpr std::string_view kBetweenParts = "\n";

// Tries a template. A role for which it accepts no form gets the form of user messages, or kText if user messages have
// none either.
ContentForms probe_content(const Render& render);

// Converts each message's content to the form for its role. A text becomes a list of one part. A list becomes one text,
// with kBetweenParts between the parts. kBoth keeps both, because the template then writes parts as its model was
// trained. Content that is neither stays; where a list is wanted, missing content becomes an empty part. REQUIRES:
// check_content(messages).
void fit_content(nlohmann::ordered_json& messages, const ContentForms& forms);
// Errors: kInvalidArgument, with the position, if a part of a message's content is not text.
Status check_content(const nlohmann::ordered_json& messages);

// The text of a content, with kBetweenParts between parts; empty if it has none.
std::string text_of_content(const nlohmann::ordered_json& content);
// Turns a message's content into a text and returns it.
std::string& content_as_text(nlohmann::ordered_json& message);
// The last text of a content: itself, or its last part's. Null if there is none.
std::string* end_of_content(nlohmann::ordered_json& content);

}  // namespace zinc_rt::output
