// Compiles grammars in llama.cpp's notation (GBNF): rules of literals, classes, groups, alternatives and repeats.
// Thread rule: pure functions.
#pragma once

#include <string_view>

#include "grammar/limits.h"
#include "grammar/rules.h"

namespace zinc_rt::grammar {

// Adds the rules of a GBNF grammar to `rules` and returns the symbol of its rule `root`. Rules that do not refer to
// themselves become one lexeme each, which does not change the language. Errors: kInvalidArgument with the line; too
// complex beyond a limit.
Result<Symbol> read_gbnf(std::string_view text, Rules& rules, const Limits& limits, Fuel& work);

}  // namespace zinc_rt::grammar
