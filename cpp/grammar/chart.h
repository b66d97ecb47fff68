// Chart is the parse of one answer: Earley's algorithm over lexemes (Earley 1970; symbols that may be empty as in
// Aycock and Horspool 2002). A row stands for a position in the text where lexemes ended. It holds the items (rule,
// state, the row where the rule began) that fit the text so far. The items determine which lexemes may come next. The
// row that a text leads to depends only on the earlier rows and on the lexemes that ended, not on time or other texts.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/lexer.h"
#include "grammar/limits.h"
#include "grammar/rules.h"

namespace zinc_rt::grammar {

class Chart {
 public:
  explicit Chart(const Rules& rules) : rules_(&rules) {}

  // Says which lexemes match the text since a row. `lexemes` is the lexer's number of their list.
  struct Ended {
    std::uint32_t row;
    std::uint32_t lexemes;
    bool operator==(const Ended&) const = default;
  };

  // Creates the first row, which has number 0.
  void begin(Lexer& lexer, Fuel& fuel);
  // Appends the row that follows the lexemes in `ended`, and returns the new row's number.
  std::uint32_t scan(std::span<const Ended> ended, Lexer& lexer, Fuel& fuel);
  // Appends the row that follows row `row` and the lexeme of one token, and returns the new row's number.
  std::uint32_t scan_token(std::uint32_t row, std::uint32_t lexeme, Lexer& lexer, Fuel& fuel);

  std::size_t n_rows() const { return rows_.size(); }
  std::size_t n_items() const { return items_.size(); }
  // Removes the rows from number n_rows on.
  void cut(std::size_t n_rows);
  // Removes all rows on which none of the given rows depends. The pointers receive the new numbers of the given rows.
  void collect(std::span<std::uint32_t*> kept);

  // Returns the lexer's state in which the text after this row begins.
  std::uint32_t start(std::uint32_t row) const { return rows_[row].start; }
  // Returns the lexemes that are single tokens and may come after this row.
  std::span<const std::uint32_t> tokens(std::uint32_t row) const {
    return std::span(token_lexemes_).subspan(rows_[row].first_token, rows_[row].n_tokens);
  }
  bool is_complete(std::uint32_t row) const { return rows_[row].is_complete; }
  std::size_t n_bytes() const { return items_.capacity() * sizeof(Item) + rows_.capacity() * sizeof(Row); }

 private:
  struct Item {
    std::uint32_t rule, state, origin;
    bool operator==(const Item&) const = default;
  };
  struct Row {
    std::uint32_t first_item, n_items;
    std::uint32_t start;
    std::uint32_t first_token, n_tokens;
    bool is_complete;
  };
  // Seen is a hash set, in which each item of the row in progress, and each symbol that the row has completed, is
  // entered once.
  class Seen {
   public:
    void clear() {
      n_ = 0;
      if (++epoch_ == 0) slots_.assign(slots_.size(), {}), epoch_ = 1;
    }
    bool insert(const Item& item);

   private:
    struct Slot {
      Item item;
      std::uint32_t epoch = 0;
    };
    std::vector<Slot> slots_ = std::vector<Slot>(64);
    std::uint32_t epoch_ = 0;
    std::size_t n_ = 0;
  };

  void add(const Item& item) {
    if (seen_.insert(item)) items_.push_back(item);
  }
  void open_row();
  void close_row(Lexer& lexer, Fuel& fuel);
  void predict(Symbol symbol, std::uint32_t row);

  const Rules* rules_;
  // All rows, and their items one row after another. A Row has the index of its first item.
  std::vector<Row> rows_;
  std::vector<Item> items_;
  // Lexemes that are single tokens and may come next, one row after another.
  std::vector<std::uint32_t> token_lexemes_;
  // The following members are used only while a row is built.
  Seen seen_;
  std::vector<std::uint32_t> predicted_;  // for each symbol, mark_ of the last row that predicted it
  std::uint32_t mark_ = 0;
  std::vector<std::uint32_t> lexemes_;
};

}  // namespace zinc_rt::grammar
