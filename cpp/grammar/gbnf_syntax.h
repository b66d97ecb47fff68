// Defines the syntax tree of a GBNF grammar. gbnf.cpp turns it into rules and lexemes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/char_set.h"
#include "grammar/limits.h"

namespace zinc_rt::grammar {

struct GbnfNode {
  enum class Kind : std::uint8_t { kLiteral, kChars, kRule, kToken, kSequence, kAlternatives, kRepeat };
  Kind kind = Kind::kSequence;
  std::string literal;
  CharSet chars;
  std::uint32_t rule = 0;
  std::int32_t token = 0;
  std::vector<GbnfNode> parts;  // a repeat has exactly one part
  std::uint32_t min = 0, max = 0;
};

struct GbnfSyntax {
  std::vector<std::string> names;
  std::vector<GbnfNode> rules;
  std::uint32_t root = 0;
};

Result<GbnfSyntax> parse_gbnf(std::string_view text, const Limits& limits);

}  // namespace zinc_rt::grammar
