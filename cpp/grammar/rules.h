// Rules is a context-free grammar whose terminals are lexemes (byte regexes) and single tokens.
//
// A rule is a sequence of symbols, a list that counts its parts, or an object whose members come in order, some of them
// optional. A list or an object would be thousands of sequences. The position within a rule is a number, called its
// state. So the parse treats the three kinds alike: for a state, for_each_next() returns which symbols may come next,
// and to which state each symbol leads.
// Thread rule: one thread until finish(); immutable after it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/limits.h"
#include "grammar/regex_arena.h"

namespace zinc_rt::grammar {

using Symbol = std::uint32_t;
inline constexpr Symbol kTerminalBit = 0x80000000u;
inline constexpr Symbol kNoSymbol = 0x7FFFFFFFu;

inline bool is_terminal(Symbol symbol) {
  return (symbol & kTerminalBit) != 0;
}
inline std::uint32_t lexeme_of(Symbol symbol) {
  return symbol & ~kTerminalBit;
}

struct Lexeme {
  Regex regex = RegexArena::kNothing;
  std::int32_t token = -1;  // if not negative, the terminal is this token and has no regex
};

struct ListRule {
  std::vector<Symbol> first;  // the symbols of the first parts, one each
  Symbol rest = kNoSymbol;    // the symbol of every later part; kNoSymbol if no later parts are allowed
  std::uint32_t min = 0, max = RegexArena::kUnbounded;
  Symbol separator = kNoSymbol;
};

struct ObjectRule {
  struct Member {
    std::uint32_t first_key = 0, next_key = 0;  // lexemes of the name, without and with the comma before it
    Symbol value = kNoSymbol;
    bool is_required = false;
  };
  std::vector<Member> members;
  std::vector<Member> rests;  // further members, any number of which may follow the listed ones
  // finish() sets these. next_required contains, for each member, the index of the first required member from it on.
  // The two lists below map the lexeme of a name to an index: i means members[i], and members.size() + i means
  // rests[i].
  std::vector<std::uint32_t> next_required;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> first_keys, next_keys;  // sorted by lexeme
};

class Rules {
 public:
  explicit Rules(const Limits& limits);

  RegexArena arena;

  // Returns a terminal for the regex. If the regex matches the empty text, returns a symbol that is empty or the
  // terminal.
  Symbol terminal(Regex regex);
  // Returns the number of the lexeme with this regex. The parse takes a lexeme only for text that is not empty.
  std::uint32_t lexeme(Regex regex);
  Symbol token(std::int32_t id);
  Symbol new_symbol();
  void add_sequence(Symbol left, std::vector<Symbol> parts);
  void add_list(Symbol left, ListRule rule);
  void add_object(Symbol left, ObjectRule rule);
  Symbol sequence(std::vector<Symbol> parts);
  Symbol alternatives(std::span<const Symbol> parts);
  Symbol repeat(Symbol part, std::uint32_t min, std::uint32_t max, Symbol separator = kNoSymbol);

  // Ends the building of rules. Removes symbols that can never be completed and fills the tables that the functions
  // below read. Returns false if the root can never be completed. Errors: too complex; those of `work`.
  Result<bool> finish(Symbol root, CompileWork& work);

  std::span<const Lexeme> lexemes() const { return lexemes_; }
  std::size_t n_symbols() const { return n_symbols_; }
  std::size_t n_rules() const { return rules_.size(); }
  Symbol root() const { return root_; }
  std::size_t n_bytes() const;

  // The following functions REQUIRE that finish() was called.
  std::span<const std::uint32_t> rules_of(Symbol symbol) const {
    return std::span(by_symbol_).subspan(symbol_begins_[symbol], symbol_begins_[symbol + 1] - symbol_begins_[symbol]);
  }
  bool is_nullable(Symbol symbol) const { return !is_terminal(symbol) && nullable_[symbol]; }
  Symbol left_of(std::uint32_t rule) const { return rules_[rule].left; }
  bool is_final(std::uint32_t rule, std::uint32_t state) const;
  // Calls f(symbol, the state after it) for each symbol that may come next in this state of the rule.
  template <class F>
  void for_each_next(std::uint32_t rule, std::uint32_t state, F f) const;
  // Returns the state after the symbol, or nullopt if the symbol is not allowed in this state.
  std::optional<std::uint32_t> next_on(std::uint32_t rule, std::uint32_t state, Symbol symbol) const;

 private:
  enum class Kind : std::uint8_t { kSequence, kList, kObject };
  struct Rule {
    Kind kind;
    bool is_dead = false;
    Symbol left;
    // For a sequence, its range in parts_; otherwise `begin` is the index in lists_ or objects_.
    std::uint32_t begin, n;
  };
  void add_rule(Kind kind, Symbol left, std::uint32_t begin, std::uint32_t n);
  bool can_end(Symbol symbol) const {
    return is_terminal(symbol) ? lexeme_can_end_[lexeme_of(symbol)] : symbol_can_end_[symbol];
  }
  bool find_can_end(const Rule& rule) const;
  bool find_nullable(const Rule& rule) const;
  void cut(Rule& rule);
  static std::uint32_t cap_of(const ListRule& list) {
    return std::max({list.min, static_cast<std::uint32_t>(list.first.size()), 1u});
  }
  Symbol part_of(const ListRule& list, std::uint32_t count) const {
    return count < list.first.size() ? list.first[count] : list.rest;
  }
  static std::uint32_t more(const ListRule& list, std::uint32_t count) {
    return list.max == RegexArena::kUnbounded ? std::min(count + 1, cap_of(list)) : count + 1;
  }

  // Phase is the position within a member. An object rule's state is 4 times the number of the next member plus the
  // phase.
  enum Phase : std::uint32_t { kFirst = 0, kNext = 1, kValue = 2, kRestValue = 3 };

  const Limits limits_;
  std::vector<Lexeme> lexemes_;
  std::vector<std::uint32_t> lexeme_by_regex_;  // index + 1 of the lexeme with this regex; 0 if there is none
  std::unordered_map<std::int32_t, std::uint32_t> lexeme_by_token_;
  std::vector<Rule> rules_;
  std::vector<Symbol> parts_;
  std::vector<ListRule> lists_;
  std::vector<ObjectRule> objects_;
  std::uint32_t n_symbols_ = 0;
  Symbol root_ = kNoSymbol;
  // finish() sorts the rules by their left symbol: those of symbol s are by_symbol_[symbol_begins_[s]] to
  // by_symbol_[symbol_begins_[s + 1] - 1].
  std::vector<std::uint32_t> by_symbol_, symbol_begins_;
  // Index: symbol or lexeme. finish() computes which symbols may be empty, and which can be completed.
  std::vector<bool> nullable_, symbol_can_end_, lexeme_can_end_;
};

template <class F>
void Rules::for_each_next(std::uint32_t number, std::uint32_t state, F f) const {
  const Rule& rule = rules_[number];
  if (rule.kind == Kind::kSequence) {
    if (state < rule.n) f(parts_[rule.begin + state], state + 1);
    return;
  }
  if (rule.kind == Kind::kList) {
    const ListRule& list = lists_[rule.begin];
    const std::uint32_t count = state >> 1;
    if ((state & 1) == 0 && count >= list.max) return;
    if ((state & 1) == 0 && count > 0 && list.separator != kNoSymbol) {
      f(list.separator, state | 1);
    } else {
      f(part_of(list, count), more(list, count) << 1);
    }
    return;
  }
  const ObjectRule& object = objects_[rule.begin];
  const std::uint32_t at = state >> 2;
  if ((state & 3) == kValue) {
    f(object.members[at].value, (at + 1) << 2 | kNext);
  } else if ((state & 3) == kRestValue) {
    f(object.rests[at - object.members.size()].value, static_cast<std::uint32_t>(object.members.size()) << 2 | kNext);
  } else {
    const bool is_first = (state & 3) == kFirst;
    const auto n = static_cast<std::uint32_t>(object.members.size());
    const std::uint32_t required = object.next_required[at];
    for (std::uint32_t i = at; i < std::min(n, required + 1); ++i) {
      const auto& member = object.members[i];
      f(kTerminalBit | (is_first ? member.first_key : member.next_key), i << 2 | kValue);
    }
    if (required < n) return;
    for (std::uint32_t i = 0; i < object.rests.size(); ++i)
      f(kTerminalBit | (is_first ? object.rests[i].first_key : object.rests[i].next_key), (n + i) << 2 | kRestValue);
  }
}

}  // namespace zinc_rt::grammar
