// JSON numbers as they were written. A value holds a 64-bit integer or a double if that prints as the same text. Any
// other number (2^64, 0.10, 1e5, -0) keeps its text, in a value of a type that no JSON text produces.
// Thread rule: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace zinc_rt {

// REQUIRES: the text is a number of JSON.
nlohmann::ordered_json kept_number(std::string_view text);
bool is_kept_number(const nlohmann::ordered_json& value);
// Whether the value is a number, in either form.
bool is_json_number(const nlohmann::ordered_json& value);

// REQUIRES for each: is_json_number(value).
std::string number_text(const nlohmann::ordered_json& value);
double number_value(const nlohmann::ordered_json& value);  // the nearest; infinite beyond all doubles

// A number without a fraction and an exponent, such as Python reads as an int.
bool is_written_whole(std::string_view number);
// The nearest double; infinite beyond all of them.
double number_value(std::string_view number);

struct JsonLayout {
  bool ensure_ascii = false;
  std::string_view comma = ",", colon = ":";
};
// The layout of Python's json.dumps, and of most templates.
inline constexpr JsonLayout kPythonLayout{.comma = ", ", .colon = ": "};

// The value on one line. Bytes that are not UTF-8 are replaced.
std::string dump_json(const nlohmann::ordered_json& value, const JsonLayout& layout = {});

}  // namespace zinc_rt
