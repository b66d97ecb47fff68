// The values of JSON Schema's keyword `format` that are enforced, as regular expressions.
// Thread rule: a constant table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt::grammar {

// An expression that whole values match (grammar/regex_parser.h); none for a format that is not known.
std::optional<std::string> format_pattern(std::string_view format);

}  // namespace zinc_rt::grammar
