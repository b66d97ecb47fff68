// Formats one value by a format specification, as Python's format(value, spec) does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jinja/runtime.h"

namespace zinc_rt::jinja {

inline constexpr std::int64_t kMaxFormatWidth = 1 << 20;

struct FormatSpec {
  std::string fill = " ";  // the one character that fills the width
  char align = 0;          // one of < > ^ =; 0: the default of the value's type
  char sign = 0;           // one of + - and space; 0 if not given
  bool alternate = false;
  bool zero = false;
  std::int64_t width = 0;
  char grouping = 0;  // one of , and _; 0 if not given
  std::int64_t precision = -1;
  char type = 0;
};

Result<MarkedText> format_text(Runtime& rt, const FormatSpec& spec, MarkedView text);
Result<std::string> format_integer(Runtime& rt, const FormatSpec& spec, std::int64_t value);
Result<std::string> format_float(Runtime& rt, const FormatSpec& spec, double value);
// Returns a formatted number as text that is not marked, because digits count as the template's own text.
inline Result<MarkedText> as_own(Result<std::string> text) {
  if (!text) return std::unexpected(std::move(text).error());
  return MarkedText(std::move(*text));
}
// Returns format(value, spec).
Result<MarkedText> format_value(Runtime& rt, const Value& value, std::string_view spec);

// Returns the text with every character outside ASCII written as \xNN, \uNNNN or \UNNNNNNNN, as Python's ascii() does.
std::string ascii_only(std::string_view text);

}  // namespace zinc_rt::jinja
