// PairSet says which two characters can be neighbours inside a token that merging produces. No merge crosses a pair
// that is not in the set. So text may be cut there and its parts merged separately, with the same result.
// Thread rule: immutable once filled.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "base/utf8.h"

namespace zinc_rt {

class PairSet {
 public:
  void add(char32_t left, char32_t right);
  // Adds all pairs of neighbouring characters in `text`. A byte that is not UTF-8 has no neighbours.
  void add_all(std::string_view text);
  bool contains(char32_t left, char32_t right) const {
    left = compact(left);
    right = compact(right);
    if ((left | right) < 0x80) return ascii_[left << 7 | right];
    return others_.contains(static_cast<std::uint64_t>(left) << 32 | right);
  }

  // Cuts `text` where no merge can cross, and calls sink(part) for each part, in order. If sink returns false, stops
  // and returns false. A byte that is not UTF-8 is a part by itself.
  template <class Sink>
  bool cut(std::string_view text, const Sink& sink) const;

 private:
  // Maps U+2581 to the space, so that the pair fits the fast table. These models replace spaces by U+2581, so their
  // texts contain no space.
  static char32_t compact(char32_t c) { return c == 0x2581 ? U' ' : c; }

  std::bitset<128 * 128> ascii_;
  std::unordered_set<std::uint64_t> others_;
};

template <class Sink>
bool PairSet::cut(std::string_view text, const Sink& sink) const {
  std::size_t begin = 0;
  char32_t last = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t n = 1;
    auto c = static_cast<char32_t>(static_cast<std::uint8_t>(text[at]));
    if (c >= 0x80) {
      n = utf8_sequence_bytes(text.substr(at, 4));
      if (n == 0) {
        if (at > begin && !sink(text.substr(begin, at - begin))) return false;
        if (!sink(text.substr(at, 1))) return false;
        begin = ++at;
        continue;
      }
      c = utf8_code_point(text.substr(at, n));
    }
    if (at > begin && !contains(last, c)) {
      if (!sink(text.substr(begin, at - begin))) return false;
      begin = at;
    }
    last = c;
    at += n;
  }
  return begin == text.size() || sink(text.substr(begin));
}

}  // namespace zinc_rt
