// The regular expressions for JSON's values and punctuation, as JSON or another notation of the same values writes
// them.
// Thread rule: as RegexArena.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_set.h"
#include "grammar/json_reader.h"
#include "grammar/regex_arena.h"

namespace zinc_rt::grammar {

// How texts and names are written. In plain spelling nothing is escaped, so some texts cannot be written at all.
struct Notation {
  Spelling spelling = Spelling::kJson;
  std::string quote = "\"";                      // written on both sides of a text
  std::optional<std::int32_t> quote_token = {};  // if set, the quote is this token instead of text
  bool has_quoted_names = true;
  std::string not_in_texts = {};  // a text that no value may contain; empty: every text can be written
  std::string not_in_names = {};  // the ASCII characters that no name may contain
};

struct JsonLexemes {
  JsonLexemes(RegexArena& arena, Regex whitespace, Notation notation = {});

  RegexArena& arena;
  Notation notation;
  Regex whitespace;  // between tokens; may be empty
  Regex character;   // of a text
  Regex texts;       // all texts that can be written, without quotes
  Regex names;       // all names that can be written, without quotes
  Regex integer;     // -?(0|[1-9][0-9]*)
  Regex number;      // an integer with optional fraction and exponent
  Regex decimal;     // an integer with optional fraction

  Regex in_quotes(Regex text) const;
  Regex name(Regex text) const { return notation.has_quoted_names ? in_quotes(text) : text; }
  // Returns whether all texts can be written.
  bool has_all_texts() const { return notation.not_in_texts.empty(); }
  // The regex of a text, and its plain or shortest spelling, both without quotes.
  Regex text(std::string_view utf8) const { return spelled(arena, utf8, notation.spelling); }
  std::string spelling_of(std::string_view utf8) const;
  Regex with_space(Regex token) { return arena.concat(whitespace, token); }
  Regex sign(std::string_view token, bool with_space_before);
  // One of these strings, without quotes.
  Regex any_text(const std::vector<std::string_view>& given);
  // One complete value: strings in all spellings, whole numbers without a fraction, white space between tokens wherever
  // it may stand. REQUIRES: the quote is a text.
  Regex constant(const Json& value);
};

// The text of a value that is not a text, list or object, as constant() writes it.
std::string scalar_text(const Json& value);
// The number written with digits only, such as "-12.5" for -1.25e1. A whole number has no point and zero has no sign.
// Returns nothing if it needs more than kMaxPlainDigits. REQUIRES: is_json_number(number).
inline constexpr std::size_t kMaxPlainDigits = 1000;
std::optional<std::string> plain_digits(const Json& number);

// Numbers without exponents that are at least (or at most) a bound in plain digits.
Regex number_bound(RegexArena& arena, std::string_view bound, bool is_upper, bool is_exclusive);

}  // namespace zinc_rt::grammar
