// Grammars in llama.cpp's notation (GBNF): rules of literals, classes, groups, alternatives and repeats.
// Thread rule: pure functions.
#pragma once

#include <string_view>

#include "grammar/limits.h"
#include "grammar/rules.h"

namespace zinc_rt::grammar {

// The symbol of the rule `root`. Rules that do not refer to themselves become one lexeme each, which changes no language.
// Fails with kInvalidArgument and the line, as too complex beyond a limit.
Result<Symbol> read_gbnf(std::string_view text, Rules& rules, const Limits& limits, Fuel& work);

}  // namespace zinc_rt::grammar
