// The one merge loop that BPE and SPM share: of all neighbouring pairs that a model can join, the best goes first, the
// leftmost of equals, until none is left. O(n log n) in the symbols of a piece.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace zinc_rt {

// A stretch of a piece's text. The chain of live symbols is linked by prev and next (-1 at the ends).
struct Symbol {
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;  // 0: joined to the symbol on its left
  std::int32_t id = -1;     // what the model calls this text; -1 when it has no name for it
  std::int32_t prev = -1;
  std::int32_t next = -1;
};

// What joining two symbols gives. A smaller priority goes first.
struct Merge {
  std::uint32_t priority = 0;
  std::int32_t id = -1;
};

// Memory of the loop, kept between pieces. Belongs to one thread.
struct MergeScratch {
  struct Candidate {
    std::uint64_t order;  // priority, then position of the left symbol
    std::uint32_t right;
    std::uint32_t bytes;  // of both together: another number later means that one of them has changed
    std::int32_t id;
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;

  // Starts a chain; symbols are then added in the order of the text.
  void clear() {
    symbols.clear();
    heap.clear();
  }
  void add(std::uint32_t begin, std::uint32_t bytes, std::int32_t id) {
    const auto index = static_cast<std::int32_t>(symbols.size());
    if (index > 0) symbols.back().next = index;
    symbols.push_back({begin, bytes, id, index - 1, -1});
  }
};

// join(left, right, merge): whether the pair can be joined, and to what. REQUIRES: fewer than 2^31 symbols.
inline constexpr std::size_t kMaxWordSymbols = 24;
template <class Join>
void merge_symbols(MergeScratch& scratch, const Join& join) {
  using Candidate = MergeScratch::Candidate;
  std::vector<Symbol>& symbols = scratch.symbols;
  std::vector<Candidate>& heap = scratch.heap;
  const auto later = [](const Candidate& a, const Candidate& b) { return a.order > b.order; };
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return false;
    const Symbol& l = symbols[static_cast<std::size_t>(left)];
    const Symbol& r = symbols[static_cast<std::size_t>(right)];
    Merge merge;
    if (!join(l, r, merge)) return false;
    heap.push_back({static_cast<std::uint64_t>(merge.priority) << 32 | static_cast<std::uint32_t>(left),
                    static_cast<std::uint32_t>(right), l.bytes + r.bytes, merge.id});
    return true;
  };
  for (std::int32_t i = 1; i < static_cast<std::int32_t>(symbols.size()); ++i) consider(i - 1, i);
  // In a word a look at all candidates is cheaper than keeping them in order.
  const bool in_order = symbols.size() > kMaxWordSymbols;
  if (in_order) std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    if (in_order) {
      std::pop_heap(heap.begin(), heap.end(), later);
    } else {
      std::iter_swap(std::max_element(heap.begin(), heap.end(), later), heap.end() - 1);
    }
    const Candidate best = heap.back();
    heap.pop_back();
    const auto left = static_cast<std::int32_t>(best.order & 0xFFFFFFFFu);
    Symbol& l = symbols[static_cast<std::size_t>(left)];
    Symbol& r = symbols[best.right];
    if (l.bytes == 0 || r.bytes == 0 || l.bytes + r.bytes != best.bytes) continue;
    l.bytes = best.bytes;
    l.id = best.id;
    l.next = r.next;
    r.bytes = 0;
    if (l.next >= 0) symbols[static_cast<std::size_t>(l.next)].prev = left;
    if (consider(l.prev, left) && in_order) std::push_heap(heap.begin(), heap.end(), later);
    if (consider(left, l.next) && in_order) std::push_heap(heap.begin(), heap.end(), later);
  }
}

}  // namespace zinc_rt
