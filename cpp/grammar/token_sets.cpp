#include "grammar/token_sets.h"

#include <algorithm>

#include "grammar/plain_text.h"

namespace zinc_rt::grammar {
namespace {

// Means that no group of plain tokens was found. The number is greater than every group and less than kNotPlain.
constexpr std::uint8_t kNoGroup = 254;

}  // namespace

const TokenSet& TokenSets::of(std::uint32_t state, Way way, Lexer& lexer, Fuel& fuel) {
  const std::uint64_t key = std::uint64_t{state} << 1 | (way == Way::kNodes ? 1 : 0);
  if (const auto it = sets_.find(key); it != sets_.end()) {
    fuel.use(it->second.work);
    return it->second;
  }
  TokenSet set;
  lexer.new_walk();
  std::uint8_t group = kNoGroup;
  bool others_are_out = false;
  if (way == Way::kPlain) {
    PlainReach reach = plain_reach(state, lexer);
    set.work += reach.work;
    const std::size_t n = std::min<std::size_t>(reach.n_characters, Vocabulary::kPlainGroups);
    if (n > 0)
      group = static_cast<std::uint8_t>((n == Vocabulary::kPlainGroups && reach.n_characters != UINT32_MAX) ? n - 2
                                                                                                            : n - 1);
    others_are_out = reach.is_exact && n < Vocabulary::kPlainGroups;
    if (group != kNoGroup) {
      set.plain = &vocabulary_.plain_tokens(group);
      set.ended_in_plain = std::move(reach.ended);
    }
  }
  // plain_reach() has already decided about all plain tokens, or about the plain tokens up to a length, or about no
  // token.
  const std::uint8_t decided = others_are_out ? kNoGroup - 1 : group == kNoGroup ? 0 : group + 1;
  const bool is_whole = walk(state, decided, set, lexer, fuel);
  if (set.tokens.size() > vocabulary_.n_mask_words()) {
    set.words.resize(vocabulary_.n_mask_words());
    for (const std::int32_t token : set.tokens)
      set.words[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
    set.tokens = {};
  }
  fuel.use(set.work);
  if (!is_whole) {
    part_ = std::move(set);
    return part_;
  }
  n_bytes_ += 200 + 4 * (set.words.size() + set.tokens.capacity());
  for (const auto& exit : set.exits) n_bytes_ += 40 + 4 * exit.nodes.capacity();
  return sets_.emplace(key, std::move(set)).first->second;
}

bool TokenSets::walk(std::uint32_t state, std::uint8_t n_decided, TokenSet& set, Lexer& lexer, const Fuel& fuel) {
  states_.resize(std::size_t{vocabulary_.max_depth()} + 1);
  states_[0] = state;
  const std::uint32_t n_nodes = vocabulary_.n_nodes();
  for (std::uint32_t number = 1; number < n_nodes;) {
    const Vocabulary::Node& node = vocabulary_.node(number);
    ++set.work;
    // If this is true, all tokens at this node and below it have been decided about already.
    const bool is_decided = node.plain < n_decided;
    const std::uint32_t to = is_decided ? Lexer::kDead : lexer.step(states_[node.depth - 1u], node.byte);
    if (to == Lexer::kDead) {
      number = node.end;
      continue;
    }
    set.work += lexer.meet(to);
    if (fuel.used() + set.work > fuel.limit()) return false;
    states_[node.depth] = to;
    const auto here = vocabulary_.tokens_at(number);
    set.tokens.insert(set.tokens.end(), here.begin(), here.end());
    if (const std::uint32_t ended = lexer.accepted(to); ended != 0 && node.end > number + 1) {
      const auto it = std::ranges::find(set.exits, ended, &TokenSet::Exits::lexemes);
      if (it != set.exits.end()) {
        it->nodes.push_back(number);
      } else {
        set.exits.push_back({ended, {number}});
      }
    }
    ++number;
  }
  return true;
}

}  // namespace zinc_rt::grammar
