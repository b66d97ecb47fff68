// What a Grammar points to, and what the matchers of one grammar share.
// Thread rule: `rules` is immutable; what a Learned holds is behind its lock, but for n_bytes.
#pragma once

#include <array>
#include <atomic>
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
  std::atomic<std::size_t> n_bytes{0};  // of the two, as of the last step: for who does not wait for the lock
  void measure() { n_bytes.store(lexer.n_bytes() + token_sets.n_bytes(), std::memory_order_relaxed); }
};

struct CompiledGrammar {
  explicit CompiledGrammar(const Limits& given) : limits(given), rules(given) {}

  // What a new matcher uses. Matchers of one Learned wait for each other, so a few share one and many have several.
  // Tables that are half full are left to the matchers that have them, so that one long answer does not fill those of
  // the next.
  std::shared_ptr<Learned> learned_for(std::shared_ptr<const Vocabulary> vocabulary);

  const Limits limits;
  Rules rules;

 private:
  static constexpr std::size_t kMostLearned = 8;
  static constexpr long kFewMatchers = 2;  // that make no other one
  bool is_fit(const std::shared_ptr<Learned>& learned, const Vocabulary* vocabulary) const;

  std::mutex lock_;
  std::array<std::shared_ptr<Learned>, kMostLearned> learned_;
  friend class Grammar;
};

}  // namespace zinc_rt::grammar
