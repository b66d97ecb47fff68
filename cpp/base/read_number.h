// Reads a number from text without locale, blanks or partial results.
// Thread rule: pure functions.
#pragma once

#include <charconv>
#include <string_view>

namespace zinc_rt {

// Returns true and sets `out` if the whole text is a number as std::from_chars reads it: without blanks and without a
// +. Otherwise returns false and leaves `out` unchanged.
template <class Number>
bool read_number(std::string_view text, Number& out) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  out = value;
  return true;
}

}  // namespace zinc_rt
