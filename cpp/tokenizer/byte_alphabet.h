// Byte-level vocabularies write each byte as one of 256 printable characters. Printable Latin-1 bytes are written as
// themselves. All other 68 bytes are written as U+0100, U+0101, ... in byte order.
// Thread rule: constant data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt {

char32_t byte_to_char(std::uint8_t byte);
std::optional<std::uint8_t> char_to_byte(char32_t code_point);

// Returns the bytes in this alphabet: "\x20hi" becomes "Ġhi".
std::string to_byte_alphabet(std::string_view bytes);
// Returns the bytes that the text stands for. Characters outside the alphabet, and bytes that are not UTF-8, stay as
// they are.
std::string from_byte_alphabet(std::string_view text);

}  // namespace zinc_rt
