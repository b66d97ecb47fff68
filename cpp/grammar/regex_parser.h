// Parses regular expressions: the common part of ECMA-262, Rust and Python.
//
// Supported: literals, . (all but line ends), [classes] with ranges and negation, \d \D \w \W \s \S (ECMA's: \d and \w
// are ASCII), \t \n \r \f \v \0 \xHH \uHHHH \u{H..} and escaped punctuation, groups (capturing, named, (?:)), |, the
// quantifiers * + ? {m} {m,} {m,n} with a lazy ? that changes no language, ^ and $ at the ends of an alternative,
// look-aheads (?= ) (?! ) that are not within an unbounded quantifier. Refused by name: look-behinds, back references,
// \b \B, \p, flags.
// Thread rule: pure functions.
#pragma once

#include <string_view>

#include "grammar/char_set.h"
#include "grammar/limits.h"
#include "grammar/regex_arena.h"

namespace zinc_rt::grammar {

enum class Anchoring : std::uint8_t {
  kWhole,  // the whole text must match
  // Some part of the text must match, as in JSON Schema's `pattern`. ^ and $ bind the match to the ends of the text.
  kFind,
};

// Returns the regex of a pattern. Errors: kInvalidArgument with the byte's position for a broken pattern or an unknown
// construct; too complex above limits.max_pattern_bytes, max_repeat and max_depth.
Result<Regex> parse_regex(RegexArena& arena, std::string_view pattern, Spelling spelling, Anchoring anchoring,
                          const Limits& limits);

}  // namespace zinc_rt::grammar
