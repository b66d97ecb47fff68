#include "grammar/lexer.h"

#include <algorithm>

namespace zinc_rt::grammar {

std::uint32_t ListTable::add(std::span<const std::uint32_t> list) {
  std::uint64_t hash = list.size();
  for (const std::uint32_t value : list) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 31;
  }
  const auto [first, last] = numbers_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (std::ranges::equal((*this)[it->second], list)) return it->second;
  const auto number = static_cast<std::uint32_t>(size());
  values_.insert(values_.end(), list.begin(), list.end());
  begins_.push_back(static_cast<std::uint32_t>(values_.size()));
  numbers_.emplace(hash, number);
  return number;
}

Lexer::Lexer(const Rules& rules, const Limits& limits)
    : rules_(rules),
      limits_(limits),
      arena_(rules.arena),
      class_of_(arena_.class_of()),
      representatives_(arena_.representatives()),
      n_classes_(arena_.n_classes()),
      search_budget_(limits.step_work / 4),
      base_bytes_(arena_.n_bytes()) {
  arena_.set_max_nodes(SIZE_MAX / 64);  // no limit on nodes, because from now on check() counts bytes instead
  states_.push_back({0, 0, 0, 0});
  next_.assign(n_classes_, kDead);
  state_of_parts_.emplace(0, kDead);
}

std::uint32_t Lexer::make(std::vector<std::uint32_t>& parts) {
  const std::uint32_t list = lists_.add(parts);
  if (const auto it = state_of_parts_.find(list); it != state_of_parts_.end()) return it->second;
  if (is_full_ || n_bytes() > limits_.max_lexer_bytes) {
    is_full_ = true;
    return kDead;
  }
  std::vector<std::uint32_t> accepted;
  std::uint32_t weight = 0;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    if (arena_.is_nullable(parts[i + 1])) accepted.push_back(parts[i]);
    weight += arena_.weight(parts[i + 1]);
  }
  const auto number = static_cast<std::uint32_t>(states_.size());
  states_.push_back({list, lists_.add(accepted), weight, 0});
  next_.resize(next_.size() + n_classes_, kUnknown);
  state_of_parts_.emplace(list, number);
  return number;
}

std::uint32_t Lexer::start(std::span<const std::uint32_t> lexemes) {
  std::vector<std::uint32_t> parts;
  for (const std::uint32_t lexeme : lexemes) {
    parts.push_back(lexeme);
    parts.push_back(rules_.lexemes()[lexeme].regex);
  }
  return make(parts);
}

std::uint32_t Lexer::make_step(std::uint32_t state, std::uint8_t byte_class) {
  if (is_full_) return kDead;
  std::vector<std::uint32_t> parts;
  const auto from = lists_[states_[state].parts];
  for (std::size_t i = 0; i < from.size(); i += 2) {
    const Regex left = arena_.derivative(from[i + 1], representatives_[byte_class]);
    if (left == RegexArena::kNothing || arena_.is_nothing(left, search_budget_)) continue;
    parts.push_back(from[i]);
    parts.push_back(left);
  }
  // If a limit stopped the computation, the result is not stored, because it may be wrong.
  if (arena_.is_over() || search_budget_ == 0) return kDead;
  const std::uint32_t made = make(parts);
  if (!is_full_) next_[state * n_classes_ + byte_class] = made;
  return made;
}

std::size_t Lexer::n_bytes() const {
  const std::size_t arena = arena_.n_bytes();
  return arena - std::min(arena, base_bytes_) + lists_.n_bytes() + states_.capacity() * sizeof(State) +
         next_.capacity() * 4 + state_of_parts_.size() * 40;
}

Status Lexer::check() const {
  if (arena_.is_over())
    return too_complex("parts of expressions in one step", limits_.step_work + 1, limits_.step_work);
  if (search_budget_ == 0)
    return too_complex("work to see whether expressions match anything", limits_.step_work / 4 + 1,
                       limits_.step_work / 4);
  if (is_full_ || arena_.is_full())
    return too_complex("bytes of lexer states", std::max(n_bytes(), limits_.max_lexer_bytes + 1),
                       limits_.max_lexer_bytes);
  return {};
}

}  // namespace zinc_rt::grammar
