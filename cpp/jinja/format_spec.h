// Laying out one value by Python's format specification.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jinja/runtime.h"

namespace zinc_rt::jinja {

inline constexpr std::int64_t kMaxFormatWidth = 1 << 20;

struct FormatSpec {
  std::string fill = " ";  // one character
  char align = 0;          // < > ^ = or 0: the type's own
  char sign = 0;           // + - space or 0
  bool alternate = false;
  bool zero = false;
  std::int64_t width = 0;
  char grouping = 0;  // , or _
  std::int64_t precision = -1;
  char type = 0;
};

Result<MarkedText> format_text(Runtime& rt, const FormatSpec& spec, MarkedView text);
Result<std::string> format_integer(Runtime& rt, const FormatSpec& spec, std::int64_t value);
Result<std::string> format_float(Runtime& rt, const FormatSpec& spec, double value);
// Numbers are the template's own text.
inline Result<MarkedText> as_own(Result<std::string> text) {
  if (!text) return std::unexpected(std::move(text).error());
  return MarkedText(std::move(*text));
}
// format(value, spec)
Result<MarkedText> format_value(Runtime& rt, const Value& value, std::string_view spec);

// ascii(): every other character as \xNN, \uNNNN or \UNNNNNNNN.
std::string ascii_only(std::string_view text);

}  // namespace zinc_rt::jinja
