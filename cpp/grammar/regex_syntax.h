// A parsed regular expression, before it is turned into bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "grammar/char_set.h"
#include "grammar/limits.h"

namespace zinc_rt::grammar {

struct RegexSyntax {
  enum class Kind : std::uint8_t { kChars, kSequence, kAlternatives, kRepeat, kBegin, kEnd, kAhead, kNotAhead };
  Kind kind = Kind::kSequence;
  CharSet chars;
  std::vector<RegexSyntax> parts;  // of a repeat and of what (?= ) and (?! ) look for: one
  std::uint32_t min = 0, max = 0;
};

Result<RegexSyntax> parse_regex_syntax(std::string_view pattern, const Limits& limits);

}  // namespace zinc_rt::grammar
