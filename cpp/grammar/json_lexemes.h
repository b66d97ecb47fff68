// JsonLexemes makes the regular expressions for JSON's values and punctuation, in the notation of JSON, or in another
// notation that models use for the same values.
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

// Says how texts and names are written. In plain spelling nothing is escaped, so some texts cannot be written at all.
struct Notation {
  Spelling spelling = Spelling::kJson;
  std::string quote = "\"";                      // opens and closes a text
  std::optional<std::int32_t> quote_token = {};  // if set, this token opens and closes a text instead of `quote`
  bool has_quoted_names = true;
  bool has_python_words = false;  // whether null, true and false are written None, True and False
  std::string not_in_texts = {};  // a text that no value may contain; if empty, every text can be written
  std::string not_in_names = {};  // ASCII characters that no name may contain
};

struct JsonLexemes {
  JsonLexemes(RegexArena& arena, Regex whitespace, Notation notation = {});

  RegexArena& arena;
  Notation notation;
  Regex whitespace;  // white space between JSON tokens; may match only the empty text
  Regex character;   // matches one character of a text
  Regex texts;       // all texts that can be written, without quotes
  Regex names;       // all names that can be written, without quotes
  Regex integer;     // matches -?(0|[1-9][0-9]*)
  Regex number;      // an integer with optional fraction and exponent
  Regex decimal;     // matches an integer with an optional fraction

  Regex in_quotes(Regex text) const;
  Regex name(Regex text) const { return notation.has_quoted_names ? in_quotes(text) : text; }
  // Returns whether every text can be written in this notation.
  bool has_all_texts() const { return notation.not_in_texts.empty(); }
  // text() returns the regex of a text's spellings. spelling_of() returns its plain or shortest spelling. Neither
  // result includes the quotes.
  Regex text(std::string_view utf8) const { return spelled(arena, utf8, notation.spelling); }
  std::string spelling_of(std::string_view utf8) const;
  Regex with_space(Regex token) { return arena.concat(whitespace, token); }
  Regex sign(std::string_view token, bool with_space_before);
  // Returns a regex for any of these texts, without quotes.
  Regex any_text(const std::vector<std::string_view>& given);
  // Returns the text of a value that is not a text, list or object, as constant() writes it.
  std::string scalar_text(const Json& value) const;
  // Returns a regex for one given value. It matches strings in all spellings of the notation. It matches whole numbers
  // only without a fraction. It allows white space between all tokens. REQUIRES: notation.quote_token is not set, so a
  // text and not a token opens and closes strings.
  Regex constant(const Json& value);
};

// plain_digits() returns the number written with digits only, such as "-12.5" for -1.25e1. A whole number has no point
// and zero has no sign. Returns nullopt if it needs more than kMaxPlainDigits. REQUIRES: is_json_number(number).
inline constexpr std::size_t kMaxPlainDigits = 1000;
std::optional<std::string> plain_digits(const Json& number);

// Returns a regex for the numbers without exponents that are at least (or, with is_upper, at most) a bound in plain
// digits.
Regex number_bound(RegexArena& arena, std::string_view bound, bool is_upper, bool is_exclusive);

}  // namespace zinc_rt::grammar
