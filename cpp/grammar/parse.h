// Parse is the state of parsing one answer: the chart, and the lexemes that have begun.
// Thread rule: one thread at a time, with MatcherCache's lock held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/chart.h"
#include "grammar/compiled.h"

namespace zinc_rt::grammar {

class Parse {
 public:
  Parse(std::shared_ptr<CompiledGrammar> grammar, std::shared_ptr<MatcherCache> cache);

  Result<bool> accept(std::int32_t token);
  Result<bool> accept_bytes(std::string_view bytes);
  Status fill(std::span<std::uint32_t> mask);
  bool is_complete() const { return here_ && chart_.is_complete(*here_); }
  bool is_ended() const { return is_ended_; }
  // Returns an error if the parse cannot continue, for example because a limit was exceeded.
  Status status() const;
  std::size_t n_bytes() const { return sizeof(Parse) + chart_.n_bytes() + threads_.capacity() * sizeof(Thread); }
  MatcherCache& cache() const { return *cache_; }

 private:
  // Holds the lexer's state in the lexemes that began after a row. Lexemes may have begun after several rows, so a
  // parse has several Threads. All of them have read the same text. A Thread is not a thread of the operating system.
  struct Thread {
    std::uint32_t row, state;
  };
  bool step(std::uint8_t byte, Fuel& fuel);
  void put_row(std::uint32_t row);
  Status finish_step(const Fuel& fuel);
  // Adds the allowed tokens below a node of the vocabulary's tree to `mask`, for a text that continues from the row.
  void walk_below(std::uint32_t node, std::uint32_t row, std::span<std::uint32_t> mask, Fuel& fuel);
  std::uint32_t row_behind(Chart::Ended ended, Fuel& fuel);
  // Returns the lexeme of a token that the grammar names by its id. Returns nullopt if the grammar does not name the
  // token.
  std::optional<std::uint32_t> named(std::int32_t token) const;
  bool is_wanted(std::uint32_t token_lexeme) const;

  std::shared_ptr<CompiledGrammar> grammar_;
  std::shared_ptr<MatcherCache> cache_;
  Chart chart_;
  std::vector<Thread> threads_;
  // Number of the row for lexemes that ended at the end of the text; empty if no lexeme ended there.
  std::optional<std::uint32_t> here_;
  bool is_ended_ = false;
  std::optional<Error> failed_;
  std::size_t n_kept_rows_ = 0;
  std::vector<std::pair<std::int32_t, std::uint32_t>> named_;  // tokens that the grammar names, each with its lexeme
  // The following members are used only within one call. They are members so that their memory is reused.
  std::vector<Thread> next_threads_, levels_;
  std::vector<std::uint32_t> level_begins_;
  std::vector<Chart::Ended> ended_;
  // Cache of row_behind().
  std::unordered_map<std::uint64_t, std::uint32_t> rows_behind_;
};

}  // namespace zinc_rt::grammar
