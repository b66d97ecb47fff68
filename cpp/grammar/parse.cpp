#include "grammar/parse.h"

#include <algorithm>
#include <utility>

namespace zinc_rt::grammar {

Parse::Parse(std::shared_ptr<CompiledGrammar> grammar, std::shared_ptr<MatcherCache> cache)
    : grammar_(std::move(grammar)), cache_(std::move(cache)), chart_(grammar_->rules) {
  const auto lexemes = grammar_->rules.lexemes();
  for (std::uint32_t i = 0; i < lexemes.size(); ++i)
    if (lexemes[i].token >= 0) named_.emplace_back(lexemes[i].token, i);
  cache_->lexer.begin();
  Fuel fuel(grammar_->limits.step_work);
  chart_.begin(cache_->lexer, fuel);
  put_row(0);
  if (const auto ok = finish_step(fuel); !ok) failed_ = ok.error();
}

Status Parse::status() const {
  if (failed_) return std::unexpected(*failed_);
  return {};
}

std::optional<std::uint32_t> Parse::named(std::int32_t token) const {
  const auto it = std::ranges::find(named_, token, &std::pair<std::int32_t, std::uint32_t>::first);
  return it == named_.end() ? std::nullopt : std::optional(it->second);
}

bool Parse::is_wanted(std::uint32_t token_lexeme) const {
  return here_ && std::ranges::find(chart_.tokens(*here_), token_lexeme) != chart_.tokens(*here_).end();
}

void Parse::put_row(std::uint32_t row) {
  here_ = row;
  if (const std::uint32_t start = chart_.start(row); start != Lexer::kDead) threads_.push_back({row, start});
}

bool Parse::step(std::uint8_t byte, Fuel& fuel) {
  Lexer& lexer = cache_->lexer;
  next_threads_.clear();
  ended_.clear();
  here_.reset();
  for (const Thread& thread : threads_) {
    const std::uint32_t state = lexer.step(thread.state, byte);
    fuel.use(1);
    if (state == Lexer::kDead) continue;
    fuel.use(kWeightWork * lexer.weight(state));
    next_threads_.push_back({thread.row, state});
    if (const std::uint32_t lexemes = lexer.accepted(state); lexemes != 0) ended_.push_back({thread.row, lexemes});
  }
  threads_.swap(next_threads_);
  if (!ended_.empty()) put_row(chart_.scan(ended_, lexer, fuel));
  return !threads_.empty() || here_;
}

// Ends a step: frees rows that no other row depends on. Returns an error if a limit was exceeded.
Status Parse::finish_step(const Fuel& fuel) {
  if (chart_.n_rows() > 2 * n_kept_rows_ + 256 || chart_.n_items() > grammar_->limits.max_items) {
    std::vector<std::uint32_t*> kept;
    for (Thread& thread : threads_) kept.push_back(&thread.row);
    if (here_) kept.push_back(&*here_);
    chart_.collect(kept);
    n_kept_rows_ = chart_.n_rows();
  }
  ZRT_CHECK_OK(cache_->lexer.check());
  ZRT_CHECK_OK(fuel.check("work of one step"));
  if (chart_.n_items() > grammar_->limits.max_items)
    return too_complex("items of a parse", chart_.n_items(), grammar_->limits.max_items);
  return {};
}

Result<bool> Parse::accept_bytes(std::string_view bytes) {
  if (failed_) return std::unexpected(*failed_);
  cache_->lexer.begin();
  // A step's work is limited. A long text counts as one more step per 256 bytes.
  Fuel fuel(grammar_->limits.step_work * (1 + bytes.size() / 256));
  const std::vector<Thread> threads = threads_;
  const auto here = here_;
  const std::size_t n_rows = chart_.n_rows();
  bool is_allowed = !is_ended_;
  for (std::size_t i = 0; i < bytes.size() && is_allowed && !fuel.is_spent(); ++i)
    is_allowed = step(static_cast<std::uint8_t>(bytes[i]), fuel);
  if (!is_allowed) {
    threads_ = threads;
    here_ = here;
    chart_.cut(n_rows);
  }
  if (auto ok = finish_step(fuel); !ok) {
    failed_ = ok.error();
    return std::unexpected(ok.error());
  }
  return is_allowed;
}

Result<bool> Parse::accept(std::int32_t token) {
  if (failed_) return std::unexpected(*failed_);
  if (is_ended_ || !cache_->vocabulary->contains(token)) return false;
  if (const auto lexeme = named(token)) {
    if (is_wanted(*lexeme)) {
      cache_->lexer.begin();
      Fuel fuel(grammar_->limits.step_work);
      threads_.clear();
      put_row(chart_.scan_token(*here_, *lexeme, cache_->lexer, fuel));
      if (auto ok = finish_step(fuel); !ok) {
        failed_ = ok.error();
        return std::unexpected(ok.error());
      }
      return true;
    }
    if (!cache_->vocabulary->is_end(token)) return false;
  }
  if (cache_->vocabulary->is_end(token)) {
    is_ended_ = is_complete();
    return is_ended_;
  }
  const std::string_view bytes = cache_->vocabulary->bytes(token);
  if (bytes.empty()) return false;
  return accept_bytes(bytes);
}

std::uint32_t Parse::row_behind(Chart::Ended ended, Fuel& fuel) {
  const std::uint64_t key = std::uint64_t{ended.row} << 32 | ended.lexemes;
  if (const auto it = rows_behind_.find(key); it != rows_behind_.end()) return it->second;
  const std::uint32_t row = chart_.scan({&ended, 1}, cache_->lexer, fuel);
  rows_behind_.emplace(key, row);
  return row;
}

void Parse::walk_below(std::uint32_t top, std::uint32_t row, std::span<std::uint32_t> mask, Fuel& fuel) {
  const Vocabulary& vocabulary = *cache_->vocabulary;
  Lexer& lexer = cache_->lexer;
  const std::uint32_t top_depth = vocabulary.node(top).depth, end = vocabulary.node(top).end;
  // levels_ holds the threads of all depths of the tree, from the node `top` down. level_begins_[d] is the index of the
  // first thread at depth d below `top`.
  levels_.assign(1, {row, chart_.start(row)});
  level_begins_.assign({0, 1});
  for (std::uint32_t number = top + 1; number < end && !fuel.is_spent();) {
    const Vocabulary::Node& node = vocabulary.node(number);
    fuel.use(1);
    const std::uint32_t depth = node.depth - top_depth;
    level_begins_.resize(depth + 1);
    levels_.resize(level_begins_[depth]);
    ended_.clear();
    for (std::uint32_t i = level_begins_[depth - 1]; i < level_begins_[depth]; ++i) {
      const Thread thread = levels_[i];
      const std::uint32_t state = lexer.step(thread.state, node.byte);
      if (state == Lexer::kDead) continue;
      fuel.use(lexer.meet(state));
      levels_.push_back({thread.row, state});
      if (const std::uint32_t lexemes = lexer.accepted(state); lexemes != 0) ended_.push_back({thread.row, lexemes});
    }
    if (levels_.size() == level_begins_[depth]) {
      number = node.end;
      continue;
    }
    for (const std::int32_t token : vocabulary.tokens_at(number))
      mask[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
    if (!ended_.empty() && node.end > number + 1) {
      const std::uint32_t behind = ended_.size() == 1 ? row_behind(ended_[0], fuel) : chart_.scan(ended_, lexer, fuel);
      if (const std::uint32_t start = chart_.start(behind); start != Lexer::kDead) levels_.push_back({behind, start});
    }
    level_begins_.push_back(static_cast<std::uint32_t>(levels_.size()));
    ++number;
  }
}

Status Parse::fill(std::span<std::uint32_t> mask) {
  ZRT_CHECK_OK(status());
  std::ranges::fill(mask, 0);
  const auto set = [&](std::int32_t token) {
    mask[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
  };
  const Vocabulary& vocabulary = *cache_->vocabulary;
  if (is_ended_) {
    std::ranges::for_each(vocabulary.end_ids(), set);
    return {};
  }
  Lexer& lexer = cache_->lexer;
  lexer.begin();
  if (cache_->token_sets.n_bytes() > grammar_->limits.max_lexer_bytes / 2) cache_->token_sets.clear();
  Fuel fuel(grammar_->limits.step_work);
  const std::size_t n_rows = chart_.n_rows();
  rows_behind_.clear();
  for (const Thread& thread : threads_) {
    const TokenSet* tokens = &cache_->token_sets.of(thread.state, TokenSets::Way::kPlain, lexer, fuel);
    const bool goes_on = std::ranges::any_of(tokens->ended_in_plain, [&](std::uint32_t lexemes) {
      return chart_.start(row_behind({thread.row, lexemes}, fuel)) != Lexer::kDead;
    });
    if (goes_on) tokens = &cache_->token_sets.of(thread.state, TokenSets::Way::kNodes, lexer, fuel);
    add_to(*tokens, mask);
    lexer.new_walk();
    for (const TokenSet::Exits& exits : tokens->exits) {
      const std::uint32_t row = row_behind({thread.row, exits.lexemes}, fuel);
      if (chart_.start(row) == Lexer::kDead) continue;
      for (const std::uint32_t node : exits.nodes) walk_below(node, row, mask, fuel);
    }
  }
  for (const auto& [token, lexeme] : named_) {
    if (!vocabulary.contains(token)) continue;
    mask[static_cast<std::size_t>(token) / 32] &= ~(std::uint32_t{1} << (token % 32));
    if (is_wanted(lexeme)) set(token);
  }
  if (is_complete()) std::ranges::for_each(vocabulary.end_ids(), set);
  chart_.cut(n_rows);
  if (auto ok = finish_step(fuel); !ok) {
    failed_ = ok.error();
    return ok;
  }
  return {};
}

}  // namespace zinc_rt::grammar
