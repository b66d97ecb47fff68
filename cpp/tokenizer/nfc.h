// Converts text to Unicode's normalization form C, in which some vocabularies were trained. In this form characters are
// composed as far as possible, and marks are in canonical order.
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt {

// Returns the text in form C, or nullopt if it already has this form. That is found out without a copy. Bytes that are
// not UTF-8 stay, and nothing is composed across them. The time is linear in the text.
std::optional<std::string> to_nfc(std::string_view text);

// One byte of form C stands for at most this many bytes of text, rounded up. The worst case is a Greek iota subscript
// with two marks, whose 7 bytes become 2.
inline constexpr std::size_t kMostNfcShrinks = 4;

}  // namespace zinc_rt
