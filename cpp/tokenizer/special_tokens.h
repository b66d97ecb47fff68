// Finds special tokens (control, user-defined) in text before the text between them is tokenized.
//
// If matches overlap, the longest token wins; among tokens of equal length, the leftmost. A token may also remove the
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

// A part of the text between special tokens (id < 0), or a special token (text empty).
struct Fragment {
  std::string_view text;
  TokenId id = -1;
};

// The white space that special tokens may remove.
inline bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

class SpecialTokens {
 public:
  struct Entry {
    std::string_view text;  // points into the vocabulary's memory
    TokenId id = -1;
    bool on_request = false;   // matched only if Rule::parse_special is true
    bool strip_right = false;  // removes the white space after it
  };

  // Says which entries are matched in which part of the text.
  struct Rule {
    bool parse_special = false;  // also match the entries with on_request
    OutsideText outside = {};    // where entries with on_request are never matched
  };

  // Skips empty texts. If texts are equal, keeps the first.
  void fill(std::vector<Entry> entries);

  // Calls sink for each part, in order. If sink returns false, stops and returns false. The worst case takes O(text
  // length x length of the longest entry). Where nothing matches, it costs one table look-up per byte. Only overlapping
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

  std::vector<Entry> entries_;   // sorted by text
  std::bitset<1 << 16> starts_;  // the first two bytes of each entry
};

}  // namespace zinc_rt
