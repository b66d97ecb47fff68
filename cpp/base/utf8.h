// Validates UTF-8, reads code points, and replaces ill-formed bytes by U+FFFD. Well-formed means Unicode's table 3-7:
// no surrogates, no overlong forms, nothing above U+10FFFF.
// Thread rule: functions without state and a plain value type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zinc_rt {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Returns the length (1 to 4 bytes) of the well-formed sequence at the start of `text`, or 0 if the text starts with no
// such sequence.
std::size_t utf8_sequence_bytes(std::string_view text);

// Returns the length in bytes of the longest well-formed prefix of `text`.
std::size_t utf8_valid_prefix(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return utf8_valid_prefix(text) == text.size();
}

// Returns whether the text has a C0 or C1 control character, DEL, or one of Unicode's line separators. A text with such
// a character could look like two lines in a log or terminal.
bool has_control_characters(std::string_view utf8);

// Returns the code point of one well-formed sequence. REQUIRES: utf8_sequence_bytes(sequence) == sequence.size().
char32_t utf8_code_point(std::string_view sequence);

// Appends the UTF-8 form of a code point up to U+10FFFF.
void append_utf8(std::string& out, char32_t code_point);

// Returns `text` with each maximal ill-formed part replaced by one U+FFFD, as Python's errors="replace" does.
std::string replace_invalid_utf8(std::string_view text);

// Replaces ill-formed bytes in text that arrives in parts. It holds back at most 3 bytes, and only those that may still
// become a well-formed sequence.
class Utf8Repair {
 public:
  // Takes the next bytes. Appends to `out` all text that later bytes cannot change.
  void push(std::string_view bytes, std::string& out);
  // Ends the text: appends one U+FFFD if the last sequence is incomplete. The object can then take another text.
  void finish(std::string& out);

 private:
  char held_[4] = {};
  std::uint8_t n_held_ = 0;
};

}  // namespace zinc_rt
