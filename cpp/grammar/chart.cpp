#include "grammar/chart.h"

#include <algorithm>

namespace zinc_rt::grammar {
namespace {

// Marks a completed symbol in the list of items, so that it differs from every item. No rule number has this bit.
constexpr std::uint32_t kCompletedBit = 0x80000000u;

}  // namespace

bool Chart::Seen::insert(const Item& item) {
  if (2 * (n_ + 1) > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    n_ = 0;
    for (const Slot& slot : old)
      if (slot.epoch == epoch_) insert(slot.item);
  }
  std::uint64_t hash = (std::uint64_t{item.rule} << 32 | item.state) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ hash >> 32 ^ item.origin) * 0xD6E8FEB86659FD93u;
  std::size_t at = (hash ^ hash >> 32) & (slots_.size() - 1);
  for (; slots_[at].epoch == epoch_; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].item == item) return false;
  slots_[at] = {item, epoch_};
  ++n_;
  return true;
}

void Chart::open_row() {
  rows_.push_back({static_cast<std::uint32_t>(items_.size()), 0, Lexer::kDead,
                   static_cast<std::uint32_t>(token_lexemes_.size()), 0, false});
  seen_.clear();
  predicted_.resize(rules_->n_symbols());
  if (++mark_ == 0) {
    std::ranges::fill(predicted_, 0);
    mark_ = 1;
  }
  lexemes_.clear();
}

void Chart::predict(Symbol symbol, std::uint32_t row) {
  if (predicted_[symbol] == mark_) return;
  predicted_[symbol] = mark_;
  for (const std::uint32_t rule : rules_->rules_of(symbol)) add({rule, 0, row});
}

void Chart::close_row(Lexer& lexer, Fuel& fuel) {
  const auto row = static_cast<std::uint32_t>(rows_.size() - 1);
  for (std::size_t i = rows_[row].first_item; i < items_.size() && !fuel.is_spent(); ++i) {
    const Item item = items_[i];
    fuel.use(kItemWork);
    // A rule that began and ended in this row matched the empty text. The items that waited for it were advanced when
    // it was predicted.
    if (rules_->is_final(item.rule, item.state) && item.origin != row) {
      const Symbol left = rules_->left_of(item.rule);
      if (seen_.insert({kCompletedBit | left, 0, item.origin})) {
        if (left == rules_->root()) rows_[row].is_complete = true;
        const Row& origin = rows_[item.origin];
        fuel.use(origin.n_items);
        for (std::uint32_t k = 0; k < origin.n_items; ++k) {
          const Item waiting = items_[origin.first_item + k];
          if (const auto next = rules_->next_on(waiting.rule, waiting.state, left))
            add({waiting.rule, *next, waiting.origin});
        }
      }
    }
    rules_->for_each_next(item.rule, item.state, [&](Symbol symbol, std::uint32_t next) {
      if (is_terminal(symbol)) {
        lexemes_.push_back(lexeme_of(symbol));
        return;
      }
      predict(symbol, row);
      if (rules_->is_nullable(symbol)) add({item.rule, next, item.origin});
    });
  }
  std::ranges::sort(lexemes_);
  lexemes_.erase(std::unique(lexemes_.begin(), lexemes_.end()), lexemes_.end());
  fuel.use(lexemes_.size());
  std::erase_if(lexemes_, [&](std::uint32_t lexeme) {
    const bool is_token = rules_->lexemes()[lexeme].token >= 0;
    if (is_token) token_lexemes_.push_back(lexeme);
    return is_token;
  });
  rows_[row].n_items = static_cast<std::uint32_t>(items_.size()) - rows_[row].first_item;
  rows_[row].n_tokens = static_cast<std::uint32_t>(token_lexemes_.size()) - rows_[row].first_token;
  rows_[row].start = lexer.start(lexemes_);
}

void Chart::begin(Lexer& lexer, Fuel& fuel) {
  cut(0);
  open_row();
  predict(rules_->root(), 0);
  close_row(lexer, fuel);
  rows_[0].is_complete = rules_->is_nullable(rules_->root());
}

std::uint32_t Chart::scan(std::span<const Ended> ended, Lexer& lexer, Fuel& fuel) {
  open_row();
  for (const Ended& end : ended) {
    const Row from = rows_[end.row];
    const auto lexemes = lexer.list(end.lexemes);
    fuel.use(1 + from.n_items * lexemes.size());
    for (std::uint32_t k = 0; k < from.n_items; ++k) {
      const Item item = items_[from.first_item + k];
      for (const std::uint32_t lexeme : lexemes)
        if (const auto next = rules_->next_on(item.rule, item.state, kTerminalBit | lexeme))
          add({item.rule, *next, item.origin});
    }
  }
  close_row(lexer, fuel);
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

std::uint32_t Chart::scan_token(std::uint32_t row, std::uint32_t lexeme, Lexer& lexer, Fuel& fuel) {
  open_row();
  const Row from = rows_[row];
  for (std::uint32_t k = 0; k < from.n_items; ++k) {
    const Item item = items_[from.first_item + k];
    if (const auto next = rules_->next_on(item.rule, item.state, kTerminalBit | lexeme))
      add({item.rule, *next, item.origin});
  }
  close_row(lexer, fuel);
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

void Chart::cut(std::size_t n_rows) {
  if (n_rows >= rows_.size()) return;
  items_.resize(rows_[n_rows].first_item);
  token_lexemes_.resize(rows_[n_rows].first_token);
  rows_.resize(n_rows);
}

void Chart::collect(std::span<std::uint32_t*> kept) {
  std::vector<bool> is_used(rows_.size(), false);
  is_used[0] = true;
  for (const std::uint32_t* row : kept) is_used[*row] = true;
  for (std::size_t row = rows_.size(); row-- > 0;) {
    if (!is_used[row]) continue;
    for (std::uint32_t k = 0; k < rows_[row].n_items; ++k) is_used[items_[rows_[row].first_item + k].origin] = true;
  }
  std::vector<std::uint32_t> new_row(rows_.size(), 0);
  std::uint32_t n_rows = 0, n_items = 0, n_tokens = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (!is_used[row]) continue;
    Row moved = rows_[row];
    new_row[row] = n_rows;
    for (std::uint32_t k = 0; k < moved.n_items; ++k) {
      Item item = items_[moved.first_item + k];
      item.origin = new_row[item.origin];
      items_[n_items + k] = item;
    }
    for (std::uint32_t k = 0; k < moved.n_tokens; ++k)
      token_lexemes_[n_tokens + k] = token_lexemes_[moved.first_token + k];
    moved.first_item = n_items;
    moved.first_token = n_tokens;
    n_items += moved.n_items;
    n_tokens += moved.n_tokens;
    rows_[n_rows++] = moved;
  }
  rows_.resize(n_rows);
  items_.resize(n_items);
  token_lexemes_.resize(n_tokens);
  for (std::uint32_t* row : kept) *row = new_row[*row];
}

}  // namespace zinc_rt::grammar
