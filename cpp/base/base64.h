// Encodes and decodes Base64 of RFC 4648, with padding. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt {

std::string to_base64(std::string_view bytes);
// Returns the decoded bytes, or nullopt if the text is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace zinc_rt
