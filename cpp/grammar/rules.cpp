#include "grammar/rules.h"

#include <numeric>
#include <utility>

namespace zinc_rt::grammar {

Rules::Rules(const Limits& limits) : arena(limits.max_regex_nodes), limits_(limits) {
  arena.start_work(4 * limits.compile_work);
}

std::uint32_t Rules::lexeme(Regex regex) {
  if (lexeme_by_regex_.size() <= regex) lexeme_by_regex_.resize(regex + 1);
  std::uint32_t& known = lexeme_by_regex_[regex];
  if (known == 0) {
    lexemes_.push_back({regex, -1});
    known = static_cast<std::uint32_t>(lexemes_.size());
  }
  return known - 1;
}

Symbol Rules::terminal(Regex regex) {
  const Symbol symbol = kTerminalBit | lexeme(regex);
  if (!arena.is_nullable(regex)) return symbol;
  if (regex == RegexArena::kEpsilon) return sequence({});
  const Symbol both = new_symbol();
  add_sequence(both, {});
  add_sequence(both, {symbol});
  return both;
}

Symbol Rules::token(std::int32_t id) {
  const auto [it, is_new] = lexeme_by_token_.emplace(id, static_cast<std::uint32_t>(lexemes_.size()));
  if (is_new) lexemes_.push_back({RegexArena::kNothing, id});
  return kTerminalBit | it->second;
}

Symbol Rules::new_symbol() {
  return n_symbols_++;
}

void Rules::add_rule(Kind kind, Symbol left, std::uint32_t begin, std::uint32_t n) {
  rules_.push_back({kind, false, left, begin, n});
}

void Rules::add_sequence(Symbol left, std::vector<Symbol> parts) {
  const auto begin = static_cast<std::uint32_t>(parts_.size());
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  add_rule(Kind::kSequence, left, begin, static_cast<std::uint32_t>(parts.size()));
}

void Rules::add_list(Symbol left, ListRule rule) {
  if (rule.rest == kNoSymbol) rule.max = std::min(rule.max, static_cast<std::uint32_t>(rule.first.size()));
  lists_.push_back(std::move(rule));
  add_rule(Kind::kList, left, static_cast<std::uint32_t>(lists_.size() - 1), 0);
}

void Rules::add_object(Symbol left, ObjectRule rule) {
  objects_.push_back(std::move(rule));
  add_rule(Kind::kObject, left, static_cast<std::uint32_t>(objects_.size() - 1), 0);
}

Symbol Rules::sequence(std::vector<Symbol> parts) {
  if (parts.size() == 1) return parts[0];
  const Symbol made = new_symbol();
  add_sequence(made, std::move(parts));
  return made;
}

Symbol Rules::alternatives(std::span<const Symbol> parts) {
  if (parts.size() == 1) return parts[0];
  const Symbol made = new_symbol();
  for (const Symbol part : parts) add_sequence(made, {part});
  return made;
}

Symbol Rules::repeat(Symbol part, std::uint32_t min, std::uint32_t max, Symbol separator) {
  if (min == 1 && max == 1) return part;
  const Symbol made = new_symbol();
  add_list(made, {{}, part, min, max, separator});
  return made;
}

bool Rules::find_can_end(const Rule& rule) const {
  if (rule.kind == Kind::kSequence) {
    const auto begin = parts_.begin() + rule.begin;
    return std::all_of(begin, begin + rule.n, [this](Symbol s) { return can_end(s); });
  }
  if (rule.kind == Kind::kList) {
    const ListRule& list = lists_[rule.begin];
    if (list.min > list.max) return false;
    if (list.min > 1 && list.separator != kNoSymbol && !can_end(list.separator)) return false;
    const std::size_t n = std::min<std::size_t>(list.min, list.first.size());
    return std::all_of(list.first.begin(), list.first.begin() + static_cast<std::ptrdiff_t>(n),
                       [this](Symbol s) { return can_end(s); }) &&
           (list.min <= list.first.size() || can_end(list.rest));
  }
  return std::ranges::all_of(objects_[rule.begin].members, [this](const ObjectRule::Member& member) {
    return !member.is_required || (can_end(member.value) && lexeme_can_end_[member.first_key]);
  });
}

bool Rules::find_nullable(const Rule& rule) const {
  const auto nullable = [this](Symbol s) { return is_nullable(s); };
  if (rule.kind == Kind::kSequence) {
    const auto begin = parts_.begin() + rule.begin;
    return std::all_of(begin, begin + rule.n, nullable);
  }
  if (rule.kind == Kind::kList) {
    const ListRule& list = lists_[rule.begin];
    return list.min == 0 || (list.first.empty() && is_nullable(list.rest) &&
                             (list.min == 1 || list.separator == kNoSymbol || is_nullable(list.separator)));
  }
  const auto& members = objects_[rule.begin].members;
  return std::ranges::none_of(members, [](const ObjectRule::Member& member) { return member.is_required; });
}

// Removes the parts of a rule that can never be completed. REQUIRES: the rule itself can be completed.
void Rules::cut(Rule& rule) {
  if (rule.kind == Kind::kList) {
    ListRule& list = lists_[rule.begin];
    if (list.separator != kNoSymbol && !can_end(list.separator)) list.max = std::min(list.max, 1u);
    for (std::uint32_t i = 0; i < list.first.size(); ++i)
      if (!can_end(list.first[i])) list.max = std::min(list.max, i);
    if (list.rest != kNoSymbol && !can_end(list.rest))
      list.max = std::min(list.max, static_cast<std::uint32_t>(list.first.size()));
    // If the parts may be empty, a list of any length can be written with fewer parts, so no minimum is needed.
    if (list.first.empty() && list.separator == kNoSymbol && list.max > 0 && is_nullable(list.rest)) list.min = 0;
  } else if (rule.kind == Kind::kObject) {
    ObjectRule& object = objects_[rule.begin];
    const auto is_dead = [this](const ObjectRule::Member& member) {
      return !can_end(member.value) || !lexeme_can_end_[member.first_key];
    };
    std::erase_if(object.members, is_dead);
    std::erase_if(object.rests, is_dead);
    const auto n = static_cast<std::uint32_t>(object.members.size());
    object.next_required.assign(n + 1, n);
    for (std::uint32_t i = n; i-- > 0;) {
      object.next_required[i] = object.members[i].is_required ? i : object.next_required[i + 1];
      object.first_keys.emplace_back(object.members[i].first_key, i);
      object.next_keys.emplace_back(object.members[i].next_key, i);
    }
    for (std::uint32_t i = 0; i < object.rests.size(); ++i) {
      object.first_keys.emplace_back(object.rests[i].first_key, n + i);
      object.next_keys.emplace_back(object.rests[i].next_key, n + i);
    }
    std::ranges::sort(object.first_keys);
    std::ranges::sort(object.next_keys);
  }
}

Result<bool> Rules::finish(Symbol root, CompileWork& work) {
  // The root becomes a new symbol that no rule refers to.
  root_ = new_symbol();
  add_sequence(root_, {root});
  if (rules_.size() > limits_.max_rules) return too_complex("rules of a grammar", rules_.size(), limits_.max_rules);
  if (arena.is_full()) return too_complex("parts of expressions", limits_.max_regex_nodes + 1, limits_.max_regex_nodes);
  for (const Lexeme& lexeme : lexemes_) {
    work.fuel.use(1);
    ZRT_CHECK_OK(work.fuel.check("work on a grammar's lexemes"));
    lexeme_can_end_.push_back(lexeme.token >= 0 || !arena.is_nothing(lexeme.regex, work.search));
  }
  if (arena.is_over())
    return too_complex("work on expressions", 4 * limits_.compile_work + 1, 4 * limits_.compile_work);
  if (work.search == 0 || arena.is_full())
    return too_complex("work to see whether expressions match anything", limits_.compile_work / 8 + 1,
                       limits_.compile_work / 8);

  // Computes two sets, which grow until nothing is added: the symbols that can be completed, and those that may be
  // empty.
  symbol_can_end_.assign(n_symbols_, false);
  nullable_.assign(n_symbols_, false);
  for (bool is_changed = true; std::exchange(is_changed, false);) {
    work.fuel.use(rules_.size() + parts_.size());
    ZRT_CHECK_OK(work.fuel.check("work on a grammar's rules"));
    for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
      if (!symbol_can_end_[rule->left] && find_can_end(*rule)) is_changed = symbol_can_end_[rule->left] = true;
      if (!nullable_[rule->left] && find_nullable(*rule)) is_changed = nullable_[rule->left] = true;
    }
    for (const Rule& rule : rules_) {
      if (!symbol_can_end_[rule.left] && find_can_end(rule)) is_changed = symbol_can_end_[rule.left] = true;
      if (!nullable_[rule.left] && find_nullable(rule)) is_changed = nullable_[rule.left] = true;
    }
  }
  for (Rule& rule : rules_) {
    rule.is_dead = !find_can_end(rule);
    if (!rule.is_dead) cut(rule);
  }

  symbol_begins_.assign(n_symbols_ + 1, 0);
  for (const Rule& rule : rules_) symbol_begins_[rule.left + 1] += rule.is_dead ? 0 : 1;
  std::partial_sum(symbol_begins_.begin(), symbol_begins_.end(), symbol_begins_.begin());
  by_symbol_.resize(symbol_begins_.back());
  std::vector<std::uint32_t> next(symbol_begins_.begin(), symbol_begins_.end() - 1);
  for (std::uint32_t i = 0; i < rules_.size(); ++i)
    if (!rules_[i].is_dead) by_symbol_[next[rules_[i].left]++] = i;
  return symbol_can_end_[root_];
}

bool Rules::is_final(std::uint32_t number, std::uint32_t state) const {
  const Rule& rule = rules_[number];
  switch (rule.kind) {
    case Kind::kSequence: return state == rule.n;
    case Kind::kList: return (state & 1) == 0 && state >> 1 >= lists_[rule.begin].min;
    case Kind::kObject: {
      const ObjectRule& object = objects_[rule.begin];
      return (state & 2) == 0 && object.next_required[state >> 2] == object.members.size();
    }
  }
  return false;
}

std::optional<std::uint32_t> Rules::next_on(std::uint32_t number, std::uint32_t state, Symbol symbol) const {
  const Rule& rule = rules_[number];
  std::optional<std::uint32_t> found;
  if (rule.kind != Kind::kObject || (state & 2) != 0) {
    for_each_next(number, state, [&](Symbol next, std::uint32_t after) {
      if (next == symbol) found = after;
    });
    return found;
  }
  if (!is_terminal(symbol)) return found;
  const ObjectRule& object = objects_[rule.begin];
  const std::uint32_t at = state >> 2, lexeme = lexeme_of(symbol);
  const bool is_first = (state & 3) == kFirst;
  const auto n = static_cast<std::uint32_t>(object.members.size());
  const auto& keys = is_first ? object.first_keys : object.next_keys;
  const auto it = std::ranges::lower_bound(keys, std::pair(lexeme, 0u));
  if (it != keys.end() && it->first == lexeme) {
    if (it->second >= n) {
      if (object.next_required[at] == n) found = it->second << 2 | kRestValue;
    } else if (it->second >= at && it->second <= object.next_required[at]) {
      found = it->second << 2 | kValue;
    }
  }
  return found;
}

std::size_t Rules::n_bytes() const {
  std::size_t n = arena.n_bytes() + lexemes_.size() * sizeof(Lexeme) + lexeme_by_regex_.size() * 4 +
                  rules_.size() * sizeof(Rule) + parts_.size() * 4 + lists_.size() * sizeof(ListRule) +
                  by_symbol_.size() * 4 + symbol_begins_.size() * 4;
  for (const ObjectRule& object : objects_)
    n += sizeof(ObjectRule) + (object.members.size() + object.rests.size()) * (sizeof(ObjectRule::Member) + 4 + 16);
  return n;
}

}  // namespace zinc_rt::grammar
