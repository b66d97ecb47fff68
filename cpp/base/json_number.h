// Keeps the text of numbers in JSON values, so that they are printed as they were written. If a 64-bit integer or a
// double prints as the same text, the JSON value holds this integer or double. Any other number (2^64, 0.10, 1e5, -0)
// is stored as its text, in a JSON value of the binary type, which no JSON text produces. "Kept number" below means a
// number that is stored as its text.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace zinc_rt {

// Returns a kept number with this text. REQUIRES: the text is a JSON number.
nlohmann::ordered_json kept_number(std::string_view text);
bool is_kept_number(const nlohmann::ordered_json& value);
// Returns whether the value is a number, whether plain or stored as its text.
bool is_json_number(const nlohmann::ordered_json& value);

// Return the number's text, or its value as a double. REQUIRES: is_json_number(value).
std::string number_text(const nlohmann::ordered_json& value);
// Returns the nearest double, which is infinite if the number exceeds all doubles.
double number_value(const nlohmann::ordered_json& value);

// Returns whether the text has neither a fraction nor an exponent, so that Python reads it as an int.
bool is_written_whole(std::string_view number);
// Returns the nearest double, which is infinite if the number exceeds all doubles.
double number_value(std::string_view number);

// Tells dump_json() whether it escapes characters other than ASCII, and which separators it writes.
struct JsonLayout {
  bool ensure_ascii = false;
  std::string_view comma = ",", colon = ":";
};
// The separators of Python's json.dumps, with which most chat templates were written.
inline constexpr JsonLayout kPythonLayout{.comma = ", ", .colon = ": "};

// Returns the value's JSON text on one line. Bytes that are not UTF-8 are replaced by U+FFFD.
std::string dump_json(const nlohmann::ordered_json& value, const JsonLayout& layout = {});

}  // namespace zinc_rt
