// The regexes of JSON's values and signs.
// Thread rule: as RegexArena.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grammar/json_reader.h"
#include "grammar/regex_arena.h"

namespace zinc_rt::grammar {

struct JsonLexemes {
  JsonLexemes(RegexArena& arena, Regex whitespace);

  RegexArena& arena;
  Regex whitespace;  // between tokens; may be empty
  Regex character;   // of a string
  Regex integer;     // -?(0|[1-9][0-9]*)
  Regex number;      // and with fraction and exponent
  Regex decimal;     // and with a fraction alone

  Regex in_quotes(Regex text) const;
  Regex with_space(Regex token) { return arena.concat(whitespace, token); }
  Regex sign(std::string_view token, bool with_space_before);
  // One of these strings, without quotes.
  Regex any_text(const std::vector<std::string_view>& texts);
  // A whole value as it is written: strings in all spellings, whole numbers without a fraction, white space between
  // tokens where any may stand.
  Regex constant(const Json& value);
};

// A value that is no list and no object, as constant() writes it.
std::string scalar_text(const Json& value);
// A number in digits alone: "-12.5" of -1.25e1. A whole number has no point, zero no sign.
std::string plain_digits(const Json& number);

// Numbers without exponents that are at least (or at most) a bound in plain digits.
Regex number_bound(RegexArena& arena, std::string_view bound, bool is_upper, bool is_exclusive);

}  // namespace zinc_rt::grammar
