#include "base/json_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kNumberSubtype = 1;

std::string_view text_of(const Json& kept) {
  const auto& bytes = kept.get_binary();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append(std::string& out, const Json& value, const JsonLayout& layout) {
  const auto scalar = [&](const Json& one) {
    out += one.dump(-1, ' ', layout.ensure_ascii, Json::error_handler_t::replace);
  };
  if (is_kept_number(value)) {
    out += text_of(value);
  } else if (value.is_array()) {
    out += '[';
    bool is_first = true;
    for (const Json& item : value) {
      if (!std::exchange(is_first, false)) out += layout.comma;
      append(out, item, layout);
    }
    out += ']';
  } else if (value.is_object()) {
    out += '{';
    bool is_first = true;
    for (const auto& [name, item] : value.get_ref<const Json::object_t&>()) {
      if (!std::exchange(is_first, false)) out += layout.comma;
      scalar(name);
      out += layout.colon;
      append(out, item, layout);
    }
    out += '}';
  } else {
    scalar(value);
  }
}

// Tells the two kinds of numbers apart that no double can hold and for which from_chars reports the same error: true if
// the number is too large, false if it is too close to 0. Both are so by hundreds of digits.
bool is_large(std::string_view number) {
  const auto end = std::min(number.find_first_of("eE"), number.size());
  const auto digits = number.substr(0, end);
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  auto exponent = number.substr(std::min(end + 1, number.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::int64_t power = 0;
  const auto read = std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  if (read.ec == std::errc::result_out_of_range) return !exponent.starts_with('-');
  return power > first - point;
}

}  // namespace

Json kept_number(std::string_view text) {
  return Json::binary({text.begin(), text.end()}, kNumberSubtype);
}

bool is_kept_number(const Json& value) {
  return value.is_binary();
}

bool is_json_number(const Json& value) {
  return value.is_number() || is_kept_number(value);
}

std::string number_text(const Json& value) {
  return is_kept_number(value) ? std::string(text_of(value)) : value.dump();
}

double number_value(const Json& value) {
  return is_kept_number(value) ? number_value(text_of(value)) : value.get<double>();
}

bool is_written_whole(std::string_view number) {
  return number.find_first_of(".eE") == std::string_view::npos;
}

double number_value(std::string_view number) {
  double value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  if (read.ec != std::errc::result_out_of_range) return value;
  return std::copysign(is_large(number) ? std::numeric_limits<double>::infinity() : 0, number[0] == '-' ? -1 : 1);
}

std::string dump_json(const Json& value, const JsonLayout& layout) {
  std::string out;
  append(out, value, layout);
  return out;
}

}  // namespace zinc_rt
