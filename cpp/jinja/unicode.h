// Treats UTF-8 text as a sequence of code points, with the character classes and case rules of Python's str. A byte
// that is not part of valid UTF-8 counts as one character and is copied unchanged. Such a byte has no class and no
// case.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zinc_rt::jinja {

enum CharFlag : std::uint16_t {
  kAlpha = 1 << 0,
  kDecimal = 1 << 1,
  kDigit = 1 << 2,
  kNumeric = 1 << 3,
  kLower = 1 << 4,
  kUpper = 1 << 5,
  kTitle = 1 << 6,
  kPrintable = 1 << 7,
  kSpace = 1 << 8,
  kCaseIgnorable = 1 << 9,
  kCased = 1 << 10,
  kIdent = 1 << 11,
  kAlnum = kAlpha | kDecimal | kDigit | kNumeric,
};

struct Char {
  std::uint32_t code = 0;  // code point; kInvalidChar + byte if the byte is not valid UTF-8
  std::uint32_t size = 0;  // length of the character in bytes
};
inline constexpr std::uint32_t kInvalidChar = 0x110000;

// Returns the character at text[pos]. REQUIRES: pos < text.size().
Char char_at(std::string_view text, std::size_t pos);
// Returns the character that ends before text[pos]. REQUIRES: 0 < pos <= text.size().
Char char_before(std::string_view text, std::size_t pos);
void append_char(std::string& out, std::uint32_t code);
std::size_t count_chars(std::string_view text);
// Returns the byte offset of character n, or text.size() if there are fewer characters. If is_ascii is true, every byte
// is a character, so the offset is n without a search.
std::size_t char_offset(std::string_view text, std::size_t n, bool is_ascii);

std::uint16_t char_flags(std::uint32_t code);
inline bool is_space(std::uint32_t code) {
  return code < 0x80 ? (code == ' ' || (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x1f))
                     : (char_flags(code) & kSpace) != 0;
}

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);        // does what Python's str.title() does
std::string to_capitalized(std::string_view text);  // does what Python's str.capitalize() does
std::string to_folded(std::string_view text);       // does what Python's str.casefold() does
std::string to_swapped(std::string_view text);      // does what Python's str.swapcase() does

// Return how many bytes of white space the text begins or ends with.
std::size_t leading_space(std::string_view text);
std::size_t trailing_space(std::string_view text);

// Return the position of the first or last occurrence, or npos if `needle` does not occur. The time is linear in both
// lengths.
std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from = 0);
std::size_t rfind_text(std::string_view text, std::string_view needle);

}  // namespace zinc_rt::jinja
