// Converts and compares ASCII letters without regard to case. Other bytes are unchanged. Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace zinc_rt {

inline char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

inline std::string to_lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return to_lower(c); });
  return out;
}

inline bool equals_in_any_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return to_lower(x) == to_lower(y); });
}

}  // namespace zinc_rt
