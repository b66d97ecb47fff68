// Unicode's normalization form C, which some vocabularies were trained on: characters are composed as far as possible
// and marks are in canonical order.
// Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt {

// Returns nothing if the text already has this form, which is found out without a copy. Bytes that are not UTF-8 stay,
// and nothing is composed across them. The time is linear in the text.
std::optional<std::string> to_nfc(std::string_view text);

// A text has at most this many times the bytes of its form C. The worst case is a Greek iota subscript with two marks:
// 7 to 2.
inline constexpr std::size_t kMostNfcShrinks = 4;

}  // namespace zinc_rt
