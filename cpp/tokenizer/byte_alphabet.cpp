#include "tokenizer/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace zinc_rt {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<char32_t, 256> to_char{};
  std::array<std::int16_t, 0x144> to_byte{};  // -1 for a character that is not in the alphabet

  constexpr Alphabet() {
    to_byte.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      to_char[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
      to_byte[to_char[byte]] = static_cast<std::int16_t>(byte);
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

char32_t byte_to_char(std::uint8_t byte) {
  return kAlphabet.to_char[byte];
}

std::optional<std::uint8_t> char_to_byte(char32_t code_point) {
  if (code_point >= kAlphabet.to_byte.size() || kAlphabet.to_byte[code_point] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(kAlphabet.to_byte[code_point]);
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(out, byte_to_char(static_cast<std::uint8_t>(c)));
  return out;
}

std::string from_byte_alphabet(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = utf8_sequence_bytes(text.substr(0, 4));
    const auto byte = n == 0 ? std::nullopt : char_to_byte(utf8_code_point(text.substr(0, n)));
    if (byte) {
      out.push_back(static_cast<char>(*byte));
    } else {
      out.append(text.substr(0, n == 0 ? 1 : n));
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  return out;
}

}  // namespace zinc_rt
