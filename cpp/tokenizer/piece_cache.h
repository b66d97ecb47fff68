// PieceCache remembers, during one call of encode, where in the output the ids of a piece are. It saves time because
// most words occur more than once in a text.
// Thread rule: belongs to one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace zinc_rt {

class PieceCache {
 public:
  // Creates an empty cache. Its size is chosen for a text of `text_bytes` bytes.
  explicit PieceCache(std::size_t text_bytes) {
    std::size_t n_slots = 16;
    while (n_slots < kMaxSlots && n_slots * 16 < text_bytes) n_slots *= 2;
    slots_.resize(n_slots);
  }

  // Appends the ids of `piece` to `out`. If the cache does not contain the piece, calls encode(piece, out) and returns
  // its result. REQUIRES: the piece's memory outlives the cache, and `out` only grows at its end.
  template <class Encode>
  bool append(std::string_view piece, std::vector<TokenId>& out, const Encode& encode) {
    if (piece.size() > kMaxPieceBytes) return encode(piece, out);
    Slot& slot = slots_[std::hash<std::string_view>{}(piece) & (slots_.size() - 1)];
    if (slot.piece == piece && slot.piece.data() != nullptr) {
      const std::size_t n = out.size();
      out.resize(n + slot.n_ids);
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(slot.begin), slot.n_ids,
                  out.begin() + static_cast<std::ptrdiff_t>(n));
      return true;
    }
    const std::size_t begin = out.size();
    if (!encode(piece, out)) return false;
    slot = {piece, begin, static_cast<std::uint32_t>(out.size() - begin)};
    return true;
  }

 private:
  static constexpr std::size_t kMaxSlots = 1u << 15;
  static constexpr std::size_t kMaxPieceBytes = 64;
  struct Slot {
    std::string_view piece;
    std::size_t begin = 0;
    std::uint32_t n_ids = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace zinc_rt
