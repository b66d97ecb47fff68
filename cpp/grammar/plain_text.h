// Finds lexer states that accept every plain text, that is, characters that a JSON string may contain unescaped.
//
// Inside a string nearly every token of a vocabulary is allowed, and all of them for the same reason. If the check is
// made once for a state, it need not be made for each token.
// Thread rule: as Lexer.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/lexer.h"

namespace zinc_rt::grammar {

struct PlainReach {
  // Every plain text of up to this many characters leads to a live state. UINT32_MAX means any number of characters.
  std::uint32_t n_characters = 0;
  bool is_exact = false;             // whether every longer plain text leads to a dead state
  std::vector<std::uint32_t> ended;  // lists of the lexemes that end within such texts
  std::uint64_t work = 0;            // number of the lexer's steps that were needed
};

PlainReach plain_reach(std::uint32_t state, Lexer& lexer);

}  // namespace zinc_rt::grammar
