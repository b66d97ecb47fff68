// Declares regular expressions for those values of JSON Schema's keyword `format` that are enforced, such as
// "date-time".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt::grammar {

// Returns a regular expression for the whole value (grammar/regex_parser.h), or nullopt for an unknown format.
std::optional<std::string> format_pattern(std::string_view format);

}  // namespace zinc_rt::grammar
