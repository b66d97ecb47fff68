// Regular expressions for the values of JSON Schema's keyword `format` that are enforced.
// Thread rule: a constant table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt::grammar {

// A regular expression for the whole value (grammar/regex_parser.h); nothing for an unknown format.
std::optional<std::string> format_pattern(std::string_view format);

}  // namespace zinc_rt::grammar
