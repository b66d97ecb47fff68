#include "grammar/plain_text.h"

#include <algorithm>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

namespace zinc_rt::grammar {
namespace {

struct ByteRange {
  std::uint8_t first, last;
};
struct PlainCharacters {
  std::uint8_t n_bytes;
  ByteRange bytes[4];
};
// Lists the byte sequences of plain characters: those of Unicode's table 3-7, without the characters that JSON escapes.
constexpr PlainCharacters kPlainCharacters[] = {
    {1, {{0x20, 0x21}}},
    {1, {{0x23, 0x5B}}},
    {1, {{0x5D, 0x7E}}},
    {2, {{0xC2, 0xDF}, {0x80, 0xBF}}},
    {3, {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}},
    {3, {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {3, {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}},
    {3, {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {4, {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}},
};

constexpr std::uint32_t kMaxCharacters = 64;
constexpr std::size_t kMaxStates = 256;
constexpr std::size_t kMaxEnded = 8;

class Search {
 public:
  Search(Lexer& lexer, PlainReach& made) : lexer_(lexer), made_(made) {}

  void run(std::uint32_t state) {
    std::vector<std::uint32_t> last = {state}, next;
    for (std::uint32_t n = 0; n < kMaxCharacters && met_.size() < kMaxStates; ++n) {
      next.clear();
      only_.reset();
      for (const std::uint32_t from : last) {
        for (const PlainCharacters& characters : kPlainCharacters) {
          if (follow(from, {characters.bytes, characters.n_bytes}, next)) continue;
          made_.is_exact = is_chain_ && n > 0 && leads_nowhere(from);
          return;
        }
      }
      is_chain_ = is_chain_ && next.size() == 1;
      made_.n_characters = n + 1;
      if (next.empty()) {
        made_.n_characters = UINT32_MAX;  // no state is new, so this holds for any number of characters
        return;
      }
      last.swap(next);
    }
  }

 private:
  // Follows all steps over a sequence of byte ranges and adds the states reached to `next`. The lexer treats bytes of a
  // class alike, so only one byte of each class is tried.
  bool follow(std::uint32_t state, std::span<const ByteRange> bytes, std::vector<std::uint32_t>& next) {
    int last_class = -1;
    for (unsigned byte = bytes[0].first; byte <= bytes[0].last; ++byte) {
      const int byte_class = lexer_.class_of(static_cast<std::uint8_t>(byte));
      if (std::exchange(last_class, byte_class) == byte_class) continue;
      const std::uint32_t to = lexer_.step(state, static_cast<std::uint8_t>(byte));
      ++made_.work;
      if (to == Lexer::kDead) return false;
      if (bytes.size() > 1) {
        if (!follow(to, bytes.subspan(1), next)) return false;
        continue;
      }
      is_chain_ = is_chain_ && only_.value_or(to) == to;
      only_ = to;
      if (!met_.insert(to).second) continue;
      made_.work += kWeightWork * lexer_.weight(to);
      next.push_back(to);
      const std::uint32_t ended = lexer_.accepted(to);
      if (ended == 0 || std::ranges::find(made_.ended, ended) != made_.ended.end()) continue;
      if (made_.ended.size() == kMaxEnded) return false;
      made_.ended.push_back(ended);
    }
    return true;
  }

  // Returns whether every character leads from this state to a dead state.
  bool leads_nowhere(std::uint32_t state) {
    return std::ranges::all_of(kPlainCharacters, [&](const PlainCharacters& characters) {
      return all_dead(state, {characters.bytes, characters.n_bytes});
    });
  }
  bool all_dead(std::uint32_t state, std::span<const ByteRange> bytes) {
    for (unsigned byte = bytes[0].first; byte <= bytes[0].last; ++byte) {
      ++made_.work;
      const std::uint32_t to = lexer_.step(state, static_cast<std::uint8_t>(byte));
      if (to != Lexer::kDead && (bytes.size() == 1 || !all_dead(to, bytes.subspan(1)))) return false;
    }
    return true;
  }

  Lexer& lexer_;
  PlainReach& made_;
  bool is_chain_ = true;               // whether each number of characters led to a single new state so far
  std::optional<std::uint32_t> only_;  // that single state, for the current number of characters
  std::unordered_set<std::uint32_t> met_;
};

}  // namespace

PlainReach plain_reach(std::uint32_t state, Lexer& lexer) {
  PlainReach made;
  Search(lexer, made).run(state);
  return made;
}

}  // namespace zinc_rt::grammar
