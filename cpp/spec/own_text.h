// Finds guesses without a model: if the last tokens of a text occurred earlier in it, what followed there may follow
// again. Edited code, quotes and JSON repeat themselves in this way.
// It reads the text of one request only, so that the speed of an answer says nothing about the texts of other requests.
// Thread rule: one thread at a time. Nothing is allocated while the text has at most `n_room` tokens.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace zinc_rt::spec {

struct Draft {
  std::span<const std::int32_t> tokens;  // valid until the text grows or another draft is made
  std::uint32_t begin = 0;               // the place in the text where the first of them was found
  std::uint32_t match = 0;               // how many tokens before them agree with the text's last ones; 0: no match
};

class OwnText {
 public:
  static constexpr std::uint32_t kShortest = 2;  // tokens of a match
  static constexpr std::uint32_t kMost = 32;     // tokens of a draft
  // A match of n tokens gives a draft of at most n + kBeyond tokens.
  static constexpr std::uint32_t kBeyond = 2;
  // The largest number of earlier places that are compared, the last ones first.
  static constexpr std::uint32_t kLooks = 64;

  explicit OwnText(std::uint32_t n_room);

  void append(std::span<const std::int32_t> tokens);
  std::uint32_t size() const { return static_cast<std::uint32_t>(text_.size()); }
  std::int32_t operator[](std::uint32_t i) const { return text_[i]; }
  // Tokens [begin, begin + n), valid until the text grows.
  std::span<const std::int32_t> part(std::uint32_t begin, std::uint32_t n) const {
    return std::span(text_).subspan(begin, n);
  }

  // Returns what followed the longest earlier match of the text's end, at most `most` tokens; of equally long matches
  // the last one. If that reaches the text's end, it goes on with its own beginning, as a text does that repeats itself.
  // Empty if there is no match of kShortest tokens.
  Draft draft(std::uint32_t most) const;

 private:
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

  std::size_t bucket(std::uint32_t end) const;
  std::uint32_t length_of_match(std::uint32_t end) const;

  std::vector<std::int32_t> text_;
  // A place is a position after a pair of tokens. last_ has the last place for each hash of a pair; before_[i] is the
  // place before place i with the same hash.
  std::vector<std::uint32_t> last_, before_;
  mutable std::array<std::int32_t, kMost> repeated_;  // a draft that goes beyond the text
};

}  // namespace zinc_rt::spec
