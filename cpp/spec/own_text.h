// OwnText finds guesses without a model: if the last tokens of a text occurred earlier in it, the tokens that followed
// there may follow again. Edited code, quotes and JSON repeat themselves in this way. It reads only the text of one
// request, so that the speed of an answer reveals nothing about other requests.
// Thread rule: one thread at a time. Nothing is allocated while the text has at most `n_room` tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace zinc_rt::spec {

struct Draft {
  std::span<const std::int32_t> tokens;  // valid until the text grows or another draft is made
  std::uint32_t begin = 0;               // index in the text of the draft's first token
  std::uint32_t match = 0;               // how many tokens before `begin` equal the text's last tokens; 0: no match
};

class OwnText {
 public:
  static constexpr std::uint32_t kShortest = 2;  // the least tokens of a match
  static constexpr std::uint32_t kMost = 32;     // the most tokens of a draft
  // The longer the match, the longer the draft: after a match of n tokens, at most n + kBeyond.
  static constexpr std::uint32_t kBeyond = 2;
  // At most this many earlier places are compared, from the latest on.
  static constexpr std::uint32_t kLooks = 64;

  explicit OwnText(std::uint32_t n_room);

  void append(std::span<const std::int32_t> tokens);
  std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }
  std::int32_t operator[](std::uint32_t i) const { return text_[i]; }
  // Returns tokens [begin, begin + n). The span is valid until the text grows.
  std::span<const std::int32_t> part(std::uint32_t begin, std::uint32_t n) const {
    return std::span(text_).subspan(begin, n);
  }

  // Finds the longest earlier match of the text's last tokens; among equally long matches, the last. Returns the tokens
  // that followed it, at most `most`. If these tokens reach the end of the text, the draft continues with its own
  // beginning, as in a text that repeats itself. Returns an empty draft if no match has kShortest tokens.
  Draft draft(std::uint32_t most) const;

 private:
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

  std::size_t bucket(std::uint32_t end) const;
  std::uint32_t length_of_match(std::uint32_t end) const;

  std::vector<std::int32_t> text_;
  // An index of all pairs of neighbouring tokens. A place is the position behind a pair. last_[hash] is the last place
  // whose pair has this hash. before_[i] is the place before place i with the same hash.
  std::vector<std::uint32_t> last_, before_;
  mutable std::array<std::int32_t, kMost> repeated_;  // holds a draft that continues beyond the end of the text
};

}  // namespace zinc_rt::spec
