// Writes strings as JSON without a JSON library, for HTTP answers that are written many times per second.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace zinc_rt {

// Appends `text` with JSON's escapes, but without quotes. REQUIRES: the text is UTF-8.
void append_escaped(std::string& out, std::string_view text);
std::string json_string(std::string_view text);

}  // namespace zinc_rt
