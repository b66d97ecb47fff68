// Merges a text of any length in linear time, with the same result as merge_symbols() on the whole text.
//
// Why this works: a sequence of symbols is the result for its text if and only if each symbol is the result for its own
// text, and each two adjacent symbols are the result for their joint text. (Merging picks the best pair by rank, then
// the leftmost. As long as no merge has crossed the borders of a part of the text, the pairs picked within the part are
// the pairs that would be picked for the part alone, in the same order. So the first merge that crosses between two
// symbols would also happen if the text consisted of these two symbols.)
//
// Therefore text is merged window by window. Each window begins where the final symbols end. Only the seam between two
// windows is checked. If the check fails, the text is merged again from a position further left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/merge.h"

namespace zinc_rt {

struct Merged {
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;
  std::int32_t id = -1;  // equal ids have equal texts; -1 if the text is no token
};

struct MergeTextScratch {
  MergeScratch merge;
  std::vector<Merged> done;
};

inline constexpr std::size_t kMergeWindow = 256;  // in bytes; a text of at most this length is merged as one window
// Symbols that end fewer than this many bytes before the end of a window are not final.
inline constexpr std::size_t kMergeMargin = 32;

// Merges `text`. Returns true with the result in scratch.done. Returns false if stop(bytes since its last call, symbols
// so far) returned true. first_symbol(text, at) returns the first symbol at a position. `join` has the same contract as
// for merge_symbols(); the symbols that it gets are positions in `text`. REQUIRES: fewer than 2^31 bytes.
template <class FirstSymbol, class Join, class Stop>
bool merge_text(std::string_view text, MergeTextScratch& scratch, const FirstSymbol& first_symbol, const Join& join,
                const Stop& stop) {
  MergeScratch& m = scratch.merge;
  std::vector<Merged>& done = scratch.done;
  done.clear();
  const auto n = static_cast<std::uint32_t>(text.size());
  // Merges the window that begins at `at`. Returns the end of its last symbol.
  const auto merge_from = [&](std::uint32_t at, std::size_t end) {
    m.clear();
    while (at < end) {
      const Merged symbol = first_symbol(text, at);
      m.add(symbol.begin, symbol.bytes, symbol.id);
      at += symbol.bytes;
    }
    merge_symbols(m, join);
    return at;
  };
  const auto take_until = [&](std::uint32_t end) {
    for (std::int32_t i = 0; i >= 0 && !m.symbols.empty();) {
      const Symbol& symbol = m.symbols[static_cast<std::size_t>(i)];
      if (symbol.begin + symbol.bytes > end && i > 0) break;
      done.push_back({symbol.begin, symbol.bytes, symbol.id});
      i = symbol.next;
    }
  };
  if (text.size() <= kMergeWindow) {
    merge_from(0, n);
    take_until(n);
    return true;
  }

  // The last pair of symbols whose check succeeded. An equal pair is not checked again.
  Merged good_left, good_right;
  const auto holds = [&](const Merged& left, const Merged& right) {
    if (left.id >= 0 && right.id >= 0 && left.id == good_left.id && right.id == good_right.id) return true;
    merge_from(left.begin, right.begin + right.bytes);
    const Symbol& first = m.symbols.front();
    const bool good = first.bytes == left.bytes && first.next >= 0 &&
                      m.symbols[static_cast<std::size_t>(first.next)].bytes == right.bytes;
    if (good) good_left = left, good_right = right;
    return good;
  };
  // The text of the previous window. If the next window has the same text, because the text repeats itself, the result
  // of the previous window is copied.
  std::string_view last_window;
  std::size_t last_begin = 0, last_end = 0;  // the previous window's result, as a range of `done`

  std::size_t window = kMergeWindow, back = kMergeMargin;
  std::uint32_t at = 0;
  while (at < n) {
    const std::uint32_t end = static_cast<std::uint32_t>(std::min<std::size_t>(n, at + window));
    const std::string_view here = text.substr(at, end - at);
    const std::size_t begin = done.size();
    if (here == last_window && end < n) {
      const std::uint32_t further = at - done[last_begin].begin;
      for (std::size_t i = last_begin; i < last_end; ++i) {
        Merged again = done[i];
        again.begin += further;
        done.push_back(again);
      }
    } else {
      const std::uint32_t merged_to = merge_from(at, end);
      take_until(merged_to >= n ? n : merged_to - static_cast<std::uint32_t>(kMergeMargin));
    }
    if (begin > 0 && !holds(done[begin - 1], done[begin])) {
      std::size_t keep = begin;
      while (keep > 0 && at - done[keep - 1].begin <= back) --keep;
      keep = keep == begin ? begin - 1 : keep;
      // The text that is merged again grows with the text whose result was dropped, so the total time stays linear.
      window = std::max(window, 2 * static_cast<std::size_t>(at - done[keep].begin));
      back *= 2;
      at = done[keep].begin;
      done.resize(keep);
      last_window = {};
      continue;
    }
    back = std::max(kMergeMargin, window / 8);
    last_window = here;
    last_begin = begin;
    last_end = done.size();
    const std::uint32_t from = std::exchange(at, done.back().begin + done.back().bytes);
    if (at - from < window / 4) window *= 2;  // only few symbols of the window are final, so the window must be larger
    if (stop(at - from, done.size())) return false;
  }
  return true;
}

}  // namespace zinc_rt
