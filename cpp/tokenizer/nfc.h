// Converts text to Unicode's normalization form C, in which some vocabularies were trained. In this form characters are
// composed as far as possible, and marks are in canonical order.
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt {

// Returns the text in form C, or nullopt if it already has this form. The check makes no copy. Bytes that are not UTF-8
// stay, and nothing is composed across them. The time is linear in the text.
std::optional<std::string> to_nfc(std::string_view text);

// A text has at most this many times as many bytes as its form C. The worst case is a Greek iota subscript with two
// marks, whose 7 bytes become 2 (rounded up).
inline constexpr std::size_t kMostNfcShrinks = 4;

}  // namespace zinc_rt
