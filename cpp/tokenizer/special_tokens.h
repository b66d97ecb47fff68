// Finds the tokens that stand for themselves in text (control, user-defined) before any merging sees it.
//
// A longer token goes before a shorter one wherever both stand; of equal length the leftmost goes first. A token may
// also swallow the white space beside it.
// Thread rule: immutable once filled.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace zinc_rt {

// A stretch of text between special tokens (id < 0), or a special token (text empty).
struct Fragment {
  std::string_view text;
  TokenId id = -1;
};

class SpecialTokens {
 public:
  struct Entry {
    std::string_view text;  // memory of the vocabulary
    TokenId id = -1;
    bool on_request = false;  // matched only when special tokens are parsed
    bool strip_left = false;  // swallows white space before it
    bool strip_right = false;
  };

  // Empty texts are left out; of equal texts the first stays.
  void fill(std::vector<Entry> entries);

  // O(text x length of the longest entry) at worst, one table look-up a byte where nothing matches.
  std::vector<Fragment> split(std::string_view text, bool parse_special) const;

 private:
  const Entry* longest_at(std::string_view text, bool parse_special) const;

  std::vector<Entry> entries_;   // by text
  std::bitset<1 << 16> starts_;  // first two bytes of the entries
};

}  // namespace zinc_rt
