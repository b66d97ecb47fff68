// TokenSets finds the tokens that a lexer state allows, by walking the vocabulary's tree, and caches the results.
// Thread rule: one thread at a time, with MatcherCache's lock held.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/lexer.h"
#include "grammar/limits.h"
#include "grammar/vocabulary.h"

namespace zinc_rt::grammar {

// Holds the tokens that a lexer state allows. `plain`, `words` and `tokens` are the tokens whose bytes all belong to
// the lexemes of the state. Other tokens continue after a lexeme has ended. For these, `exits` lists the nodes of the
// tree where the lexeme ends, and the parse decides about them.
struct TokenSet {
  // If this is not null, all tokens of this group of the vocabulary's plain tokens are allowed.
  const std::vector<std::uint32_t>* plain = nullptr;
  std::vector<std::uint32_t> words;  // one bit per token; if empty, the set is in `tokens`
  std::vector<std::int32_t> tokens;
  struct Exits {
    std::uint32_t lexemes;             // lexemes that end here, as the number of a list of the lexer
    std::vector<std::uint32_t> nodes;  // nodes of the tree where these lexemes end; only nodes that have children
  };
  std::vector<Exits> exits;
  // Lists of lexemes that end within plain tokens. If the text may continue after one of them, call of() with kNodes.
  std::vector<std::uint32_t> ended_in_plain;
  // The work of computing the set; each call of of() adds it to the caller's work, cached or not.
  std::uint64_t work = 0;
};

class TokenSets {
 public:
  enum class Way : std::uint8_t {
    kPlain,  // decides about plain tokens at once where the state allows it
    kNodes,  // decides about every token by the tree's nodes
  };

  explicit TokenSets(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  // Returns the tokens that a state allows. Begins a walk of the lexer. If the fuel runs out, the set may lack tokens.
  // The reference is valid until the next call or clear().
  const TokenSet& of(std::uint32_t state, Way way, Lexer& lexer, Fuel& fuel);
  void clear() {
    sets_.clear();
    n_bytes_ = 0;
  }
  std::size_t n_bytes() const { return n_bytes_; }

 private:
  // Walks the tree and adds the allowed tokens to `set`. Skips a node if all tokens at and below it belong to one of
  // the first n_decided groups of plain tokens, because plain_reach() has already decided about these groups. Returns
  // false if the fuel ran out.
  bool walk(std::uint32_t state, std::uint8_t n_decided, TokenSet& set, Lexer& lexer, const Fuel& fuel);

  const Vocabulary& vocabulary_;
  std::unordered_map<std::uint64_t, TokenSet> sets_;
  std::size_t n_bytes_ = 0;
  std::vector<std::uint32_t> states_;  // the lexer's state at each depth of the walk
  TokenSet part_;                      // the last set whose walk ran out of fuel
};

inline void add_to(const TokenSet& set, std::span<std::uint32_t> mask) {
  if (set.plain != nullptr)
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] |= (*set.plain)[i];
  for (std::size_t i = 0; i < set.words.size(); ++i) mask[i] |= set.words[i];
  for (const std::int32_t token : set.tokens)
    mask[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
}

}  // namespace zinc_rt::grammar
