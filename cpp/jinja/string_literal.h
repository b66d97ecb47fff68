// Decodes the escapes of string literals, as Python's unicode-escape codec does.
#pragma once

#include <string>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt::jinja {

// Returns the decoded text. `body` is the text between the quotes. The error's message has no line number.
Result<std::string> decode_string_literal(std::string_view body);

}  // namespace zinc_rt::jinja
