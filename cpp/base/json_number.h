// JSON numbers that keep their text. If a 64-bit integer or a double prints as the same text, the JSON value holds
// that. Any other number (2^64, 0.10, 1e5, -0) is kept as its text, in a JSON value of the binary type, which no JSON
// text produces. Here "kept number" means such a value.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace zinc_rt {

// Returns a kept number. REQUIRES: the text is a JSON number.
nlohmann::ordered_json kept_number(std::string_view text);
bool is_kept_number(const nlohmann::ordered_json& value);
// Whether the value is a number, kept as text or not.
bool is_json_number(const nlohmann::ordered_json& value);

// REQUIRES for each: is_json_number(value).
std::string number_text(const nlohmann::ordered_json& value);
double number_value(const nlohmann::ordered_json& value);  // the nearest double; infinite if it exceeds all doubles

// Whether the text has neither a fraction nor an exponent, so that Python reads it as an int.
bool is_written_whole(std::string_view number);
// The nearest double; infinite if the number exceeds all doubles.
double number_value(std::string_view number);

struct JsonLayout {
  bool ensure_ascii = false;
  std::string_view comma = ",", colon = ":";
};
// The separators that Python's json.dumps uses, and so most chat templates.
inline constexpr JsonLayout kPythonLayout{.comma = ", ", .colon = ": "};

// Returns the value's JSON text on one line. Bytes that are not UTF-8 are replaced by U+FFFD.
std::string dump_json(const nlohmann::ordered_json& value, const JsonLayout& layout = {});

}  // namespace zinc_rt
