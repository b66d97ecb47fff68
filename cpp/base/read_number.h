// Numbers that people and files write as text.
// Thread rule: pure functions.
#pragma once

#include <charconv>
#include <string_view>

namespace zinc_rt {

// Whether all of the text is a number of this type, as std::from_chars reads it: without blanks and without a +. Only
// then `out` changes.
template <class Number>
bool read_number(std::string_view text, Number& out) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  out = value;
  return true;
}

}  // namespace zinc_rt
