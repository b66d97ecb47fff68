// Lexer is a deterministic automaton over bytes that recognizes all lexemes of a grammar at once. A state of the lexer
// is created when a text first reaches it.
//
// A state is a set of pairs of a lexeme and a regex. The regex describes the rest of that lexeme. The parse reads the
// next lexeme from the state that start() returns. That state has one pair for each lexeme that may come next.
// Thread rule: one thread at a time, with MatcherCache's lock held.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/limits.h"
#include "grammar/rules.h"

namespace zinc_rt::grammar {

// Stores the lists of numbers that describe the lexer's states (Lexer::State). Each list is stored once and is
// identified by a number. List 0 is empty.
class ListTable {
 public:
  ListTable() { add({}); }
  std::uint32_t add(std::span<const std::uint32_t> list);
  std::span<const std::uint32_t> operator[](std::uint32_t number) const {
    return std::span(values_).subspan(begins_[number], begins_[number + 1] - begins_[number]);
  }
  std::size_t size() const { return begins_.size() - 1; }
  std::size_t n_bytes() const { return values_.capacity() * 4 + begins_.capacity() * 4 + numbers_.size() * 40; }

 private:
  // All lists one after another; list i begins at values_[begins_[i]].
  std::vector<std::uint32_t> values_;
  std::vector<std::uint32_t> begins_ = {0};
  std::unordered_multimap<std::uint64_t, std::uint32_t> numbers_;  // maps the hash of a list to its number
};

class Lexer {
 public:
  static constexpr std::uint32_t kDead = 0;

  // REQUIRES: `rules` is finished and outlives this object.
  Lexer(const Rules& rules, const Limits& limits);

  // Must be called before each step of a matcher. Starts a new count of the work of searches.
  void begin() {
    search_budget_ = limits_.step_work / 4;
    arena_.start_work(limits_.step_work);
  }

  // Returns the state from which the texts of these lexemes are read. `lexemes` is sorted and contains no tokens.
  std::uint32_t start(std::span<const std::uint32_t> lexemes);
  std::uint32_t step(std::uint32_t state, std::uint8_t byte) {
    const std::uint32_t known = next_[state * n_classes_ + class_of_[byte]];
    return known != kUnknown ? known : make_step(state, class_of_[byte]);
  }
  // Returns the class of a byte. From any state, all bytes of a class lead to the same next state.
  std::uint8_t class_of(std::uint8_t byte) const { return class_of_[byte]; }
  // Returns the number of the list of lexemes that may end in this state; 0 if no lexeme may end here.
  std::uint32_t accepted(std::uint32_t state) const { return states_[state].accepted; }
  std::span<const std::uint32_t> list(std::uint32_t number) const { return lists_[number]; }
  std::uint32_t weight(std::uint32_t state) const { return states_[state].weight; }
  // new_walk() begins a walk over the vocabulary's tree. meet() returns the cost of computing a state's steps when a
  // walk first reaches the state, and 0 after that.
  void new_walk() { ++walk_; }
  std::uint64_t meet(std::uint32_t state) {
    State& met = states_[state];
    if (met.walk == walk_) return 0;
    met.walk = walk_;
    return kWeightWork * met.weight;
  }

  // Returns an error once there are too many states. Results since then may be wrong.
  Status check() const;
  std::size_t n_bytes() const;

 private:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  struct State {
    std::uint32_t parts;  // number of a list: lexeme, regex, lexeme, regex ...
    std::uint32_t accepted;
    std::uint32_t weight;
    std::uint64_t walk;  // number of the last walk that reached the state
  };
  std::uint32_t make(std::vector<std::uint32_t>& parts);
  std::uint32_t make_step(std::uint32_t state, std::uint8_t byte_class);

  const Rules& rules_;
  const Limits limits_;
  RegexArena arena_;  // begins as a copy of the rules' arena
  std::array<std::uint8_t, 256> class_of_;
  std::vector<std::uint8_t> representatives_;
  std::size_t n_classes_;
  std::uint64_t search_budget_;
  std::size_t base_bytes_;
  ListTable lists_;
  std::vector<State> states_;
  // next_[state * n_classes_ + class] is the state after a byte of this class; kUnknown: not computed yet.
  std::vector<std::uint32_t> next_;
  // Key: State::parts; value: the state's number.
  std::unordered_map<std::uint32_t, std::uint32_t> state_of_parts_;
  std::uint64_t walk_ = 1;
  bool is_full_ = false;
};

}  // namespace zinc_rt::grammar
