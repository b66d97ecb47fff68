// What a Grammar points to, and what the matchers of one grammar share.
// Thread rule: `rules` is immutable; `shared` is behind the lock, and so is what it points to.
#pragma once

#include <memory>
#include <mutex>

#include "grammar/grammar.h"
#include "grammar/lexer.h"
#include "grammar/rules.h"
#include "grammar/token_sets.h"

namespace zinc_rt::grammar {

// What matchers learn: the lexer's states and the tokens that they allow, for one vocabulary.
struct Learned {
  Learned(const Rules& rules, const Limits& limits, std::shared_ptr<const Vocabulary> tokens)
      : vocabulary(std::move(tokens)), lexer(rules, limits), token_sets(*vocabulary) {}
  std::shared_ptr<const Vocabulary> vocabulary;
  std::mutex lock;
  Lexer lexer;
  TokenSets token_sets;
};

struct CompiledGrammar {
  explicit CompiledGrammar(const Limits& given) : limits(given), rules(given) {}

  // What a new matcher uses. Tables that are half full are left to the matchers that have them, so that one long answer
  // does not fill those of the next.
  std::shared_ptr<Learned> learned_for(std::shared_ptr<const Vocabulary> vocabulary);

  const Limits limits;
  Rules rules;

 private:
  std::mutex lock_;
  std::shared_ptr<Learned> shared_;
  friend class Grammar;
};

}  // namespace zinc_rt::grammar
