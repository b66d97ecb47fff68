// CompiledGrammar is what copies of a Grammar share: the rules, and caches that its matchers fill.
// Thread rule: `rules` is immutable. A MatcherCache is protected by its lock, except for n_bytes.
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

// Holds what matchers compute and share for one vocabulary: the lexer's states and the tokens that each state allows.
struct MatcherCache {
  MatcherCache(const Rules& rules, const Limits& limits, std::shared_ptr<const Vocabulary> tokens)
      : vocabulary(std::move(tokens)), lexer(rules, limits), token_sets(*vocabulary) {}
  std::shared_ptr<const Vocabulary> vocabulary;
  std::mutex lock;
  Lexer lexer;
  TokenSets token_sets;
  std::atomic<std::size_t> n_bytes{0};  // bytes of lexer and token sets after the last step; readable without the lock
  void measure() { n_bytes.store(lexer.n_bytes() + token_sets.n_bytes(), std::memory_order_relaxed); }
};

struct CompiledGrammar {
  explicit CompiledGrammar(const Limits& given) : limits(given), rules(given) {}

  // Returns the cache that a new matcher uses. Matchers that share a cache wait for each other. So a cache serves at
  // most kFewMatchers matchers while another cache can be made. A cache that is half full gets no new matchers, so that
  // a long answer does not use up the memory of later matchers.
  std::shared_ptr<MatcherCache> cache_for(std::shared_ptr<const Vocabulary> vocabulary);

  const Limits limits;
  Rules rules;

 private:
  static constexpr std::size_t kMostCaches = 8;
  static constexpr long kFewMatchers = 2;  // most matchers that share one cache while another cache can be made
  bool is_fit(const std::shared_ptr<MatcherCache>& cache, const Vocabulary* vocabulary) const;

  std::mutex lock_;
  std::array<std::shared_ptr<MatcherCache>, kMostCaches> caches_;
  friend class Grammar;
};

}  // namespace zinc_rt::grammar
