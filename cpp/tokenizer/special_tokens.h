// SpecialTokens finds special tokens (control and user-defined) in text. The tokenizer then encodes the text between
// them.
//
// If matches overlap, the longest token wins. If they have equal length, the leftmost wins. A token may also remove the
// white space after it.
// Thread rule: immutable once filled.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tokenizer/outside_text.h"
#include "tokenizer/vocab.h"

namespace zinc_rt {

// Fragment is a part of a text: either a special token (`text` is empty), or text between special tokens (`id` is
// negative).
struct Fragment {
  std::string_view text;
  TokenId id = -1;
};

// Returns whether the character is white space that special tokens may remove.
inline bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

class SpecialTokens {
 public:
  struct Entry {
    std::string_view text;  // points into the vocabulary's memory
    TokenId id = -1;
    bool on_request = false;   // matched only if Rule::parse_special is true
    bool strip_right = false;  // the white space after the token is removed
  };

  // Rule says which special tokens are matched in which part of a text.
  struct Rule {
    bool parse_special = false;  // whether entries with on_request are matched too
    OutsideText outside = {};    // the parts of the text where entries with on_request are never matched
  };

  // Sets the special tokens. Entries with an empty text are skipped. If several entries have the same text, only the
  // first is used.
  void fill(std::vector<Entry> entries);

  // Calls sink for each part, in order. If sink returns false, stops and returns false. The worst case takes O(text
  // length x length of the longest entry). Text without matches takes one table look-up per byte. Only overlapping
  // matches need memory. REQUIRES: fewer than 2^32 bytes.
  using Sink = std::function<bool(const Fragment&)>;
  bool split(std::string_view text, const Rule& rule, const Sink& sink) const;

 private:
  struct Match {
    std::uint32_t begin = 0;
    std::uint32_t entry = 0;
  };
  struct Taken {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    TokenId id = -1;
  };
  const Entry* longest_at(std::string_view text, std::size_t at, const Rule& rule) const;
  std::uint32_t number_of(const Entry* entry) const { return static_cast<std::uint32_t>(entry - entries_.data()); }
  std::vector<Taken> choose(std::string_view text, const Rule& rule, const std::vector<Match>& group,
                            std::size_t reach) const;

  std::vector<Entry> entries_;   // sorted by text, for a binary search
  std::bitset<1 << 16> starts_;  // bit i is set if an entry begins with the two bytes i
};

}  // namespace zinc_rt
