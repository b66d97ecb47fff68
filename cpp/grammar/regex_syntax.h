// Defines the syntax tree of a regular expression. regex_parser.cpp turns it into a regex over bytes.
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
  std::vector<RegexSyntax> parts;  // a repeat, (?= ) and (?! ) have exactly one part
  std::uint32_t min = 0, max = 0;
};

Result<RegexSyntax> parse_regex_syntax(std::string_view pattern, const Limits& limits);

}  // namespace zinc_rt::grammar
