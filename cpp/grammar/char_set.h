// CharSet is a set of code points. This file also makes regexes over the bytes of characters, either as UTF-8 or as
// they are written within a JSON string.
// Thread rule: plain values.
#pragma once

#include <utility>
#include <vector>

#include "grammar/regex_arena.h"

namespace zinc_rt::grammar {

class CharSet {
 public:
  static CharSet any();  // returns all code points but surrogates
  static CharSet of(std::initializer_list<std::pair<char32_t, char32_t>> ranges);
  void add(char32_t first, char32_t last);
  void add(const CharSet& other);
  CharSet complement() const;
  CharSet without(const CharSet& other) const;
  CharSet common(const CharSet& other) const;
  bool is_empty() const { return ranges_.empty(); }
  const std::vector<std::pair<char32_t, char32_t>>& ranges() const { return ranges_; }

 private:
  void normalize();
  std::vector<std::pair<char32_t, char32_t>> ranges_;  // ascending, with gaps between them, without surrogates
};

// Says how text is written. kPlain writes UTF-8. In JSON strings (kJson) a quote and a backslash are escaped, control
// characters and U+007F are \u00XX or their short escape, and every other character is written unescaped. So only
// control characters have two spellings, and a length or pattern checks exactly what is written.
enum class Spelling : std::uint8_t { kPlain, kJson };

Regex one_of(RegexArena& arena, const CharSet& set, Spelling spelling);
// Returns a regex for all spellings of a text. This and the next two functions REQUIRE UTF-8.
Regex spelled(RegexArena& arena, std::string_view utf8, Spelling spelling);
bool has_one_spelling(std::string_view utf8);
// Returns the text as it stands in a JSON string, with short escapes where they exist.
std::string json_spelling(std::string_view utf8);

}  // namespace zinc_rt::grammar
