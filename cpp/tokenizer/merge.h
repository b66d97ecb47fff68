// Implements the merge loop of BPE and SentencePiece. Of all adjacent pairs that the model can merge, it first merges
// the pair with the best priority (of equal pairs the leftmost), until no pair can be merged. The time is O(n log n)
// for n symbols. merge_text.h makes it linear for long texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zinc_rt {

// A symbol is a part of the text that may be merged with its neighbours. prev and next link the symbols that still
// exist; they are -1 at the ends.
struct Symbol {
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;  // 0 if this symbol was merged into its left neighbour
  std::int32_t id = -1;     // the model's id for the symbol's text; -1 if the text has no id
  std::int32_t prev = -1;
  std::int32_t next = -1;
};

// Merge is the result of merging two symbols. Of all possible merges, the merge with the smallest priority is done
// first.
struct Merge {
  std::uint32_t priority = 0;  // smaller is merged first; always below MergeOrder::kNone
  std::int32_t id = -1;
};

// Stores one number per index and finds the first index with the smallest number. It is a tree in which each node holds
// the smallest number of its eight children.
class MergeOrder {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};  // stored for an index whose pair cannot be merged

  // Sets the number of indices; all numbers are kNone.
  void reset(std::size_t n) {
    levels_.clear();
    std::size_t total = 0;
    do {
      n = (n + kFan - 1) / kFan;
      levels_.push_back(total);
      total += n * kFan;
    } while (n > 1);
    values_.assign(total, kNone);
  }
  // Sets the number of an index. first_least() takes it into account only after build() or refresh().
  void put(std::size_t place, std::uint32_t value) { values_[place] = value; }
  void build() {
    for (std::size_t level = 0; level + 1 < levels_.size(); ++level) {
      const std::size_t n_blocks = (levels_[level + 1] - levels_[level]) / kFan;
      for (std::size_t block = 0; block < n_blocks; ++block)
        values_[levels_[level + 1] + block] = least_of(levels_[level] + block * kFan);
    }
  }
  void refresh(std::size_t place) {
    for (std::size_t level = 0; level + 1 < levels_.size(); ++level) {
      place /= kFan;
      std::uint32_t& above = values_[levels_[level + 1] + place];
      const std::uint32_t least = least_of(levels_[level] + place * kFan);
      if (above == least) return;
      above = least;
    }
  }
  // Returns whether refresh() of index a also refreshes index b.
  static bool same_block(std::size_t a, std::size_t b) { return a / kFan == b / kFan; }
  // Returns the first index with the smallest number, or -1 if all numbers are kNone.
  std::ptrdiff_t first_least() const {
    std::size_t block = 0;
    for (std::size_t level = levels_.size(); level-- > 0;) {
      const std::uint32_t* values = &values_[levels_[level] + block * kFan];
      const std::uint32_t least = least_of(levels_[level] + block * kFan);
      if (least == kNone) return -1;
      std::size_t child = 0;
      while (values[child] != least) ++child;
      block = block * kFan + child;
    }
    return static_cast<std::ptrdiff_t>(block);
  }

 private:
  static constexpr std::size_t kFan = 8;
  std::uint32_t least_of(std::size_t begin) const {
    const std::uint32_t* v = &values_[begin];
    return std::min(std::min(std::min(v[0], v[1]), std::min(v[2], v[3])),
                    std::min(std::min(v[4], v[5]), std::min(v[6], v[7])));
  }
  // All levels of the tree, one after another, from the leaves (one number per index) to the root.
  std::vector<std::uint32_t> values_;
  std::vector<std::size_t> levels_;  // index in values_ at which each level begins
};

// MergeScratch is the memory of the merge loop, which is reused for the next piece. It belongs to one thread.
struct MergeScratch {
  std::vector<Symbol> symbols;
  std::vector<std::int32_t> joined;  // per symbol, the id that merging it with its right neighbour would produce
  MergeOrder order;                  // per symbol, the priority of this merge
  std::uint64_t n_joins = 0;         // number of pairs that all calls examined, as a measure of the work

  // Removes all symbols. Call it before you add() the symbols of a text, in the order of the text.
  void clear() { symbols.clear(); }
  void add(std::uint32_t begin, std::uint32_t bytes, std::int32_t id) {
    const auto index = static_cast<std::int32_t>(symbols.size());
    if (index > 0) symbols.back().next = index;
    symbols.push_back({begin, bytes, id, index - 1, -1});
  }
};

// Merges the symbols in `scratch` until no pair can be merged. join(left, right, merge) returns whether a pair can be
// merged, and sets the result. REQUIRES: fewer than 2^31 symbols.
template <class Join>
void merge_symbols(MergeScratch& scratch, const Join& join) {
  std::vector<Symbol>& symbols = scratch.symbols;
  MergeOrder& order = scratch.order;
  if (symbols.size() < 2) return;
  order.reset(symbols.size());
  scratch.joined.resize(symbols.size());
  const auto consider = [&](std::size_t left) {
    const Symbol& l = symbols[left];
    Merge merge;
    ++scratch.n_joins;
    if (l.next < 0 || !join(l, symbols[static_cast<std::size_t>(l.next)], merge))
      return order.put(left, MergeOrder::kNone);
    scratch.joined[left] = merge.id;
    order.put(left, merge.priority);
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) consider(i);
  order.build();
  for (std::ptrdiff_t best; (best = order.first_least()) >= 0;) {
    const auto left = static_cast<std::size_t>(best);
    Symbol& l = symbols[left];
    const auto right = static_cast<std::size_t>(l.next);
    Symbol& r = symbols[right];
    l.bytes += r.bytes;
    l.id = scratch.joined[left];
    l.next = r.next;
    r.bytes = 0;
    if (l.next >= 0) symbols[static_cast<std::size_t>(l.next)].prev = static_cast<std::int32_t>(left);
    consider(left);
    order.put(right, MergeOrder::kNone);
    order.refresh(left);
    if (!MergeOrder::same_block(left, right)) order.refresh(right);
    if (l.prev < 0) continue;
    const auto before = static_cast<std::size_t>(l.prev);
    consider(before);
    order.refresh(before);
  }
}

}  // namespace zinc_rt
