#include "spec/own_text.h"

#include <algorithm>
#include <bit>

namespace zinc_rt::spec {
namespace {

// Matches are compared only up to this length, because a longer match allows no longer draft.
constexpr std::uint32_t kLongestMatch = 4 * OwnText::kMost;

}  // namespace

OwnText::OwnText(std::uint32_t n_room) : last_(std::bit_ceil(std::max(n_room, 16u)), kNowhere) {
  text_.reserve(n_room);
  before_.reserve(n_room + 1);
}

// Returns the index in last_ of the pair of tokens before `end`.
std::size_t OwnText::bucket(std::uint32_t end) const {
  const auto a = static_cast<std::uint64_t>(static_cast<std::uint32_t>(text_[end - 2]));
  const auto b = static_cast<std::uint64_t>(static_cast<std::uint32_t>(text_[end - 1]));
  return ((a << 32 | b) * 0x9E3779B97F4A7C15u) >> 32 & (last_.size() - 1);
}

void OwnText::append(std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens) {
    // The place after a pair of tokens enters the index only when another token has been appended, because until then
    // no draft could begin there.
    if (const std::uint32_t end = size(); end >= kShortest) {
      before_.resize(end + 1, kNowhere);
      std::uint32_t& last = last_[bucket(end)];
      before_[end] = last;
      last = end;
    }
    text_.push_back(token);
  }
}

// Returns how many tokens before `end` equal the last tokens of the text.
std::uint32_t OwnText::length_of_match(std::uint32_t end) const {
  const std::uint32_t most = std::min(end, kLongestMatch);
  std::uint32_t n = 0;
  while (n < most && text_[end - 1 - n] == text_[size() - 1 - n]) ++n;
  return n;
}

Draft OwnText::draft(std::uint32_t most) const {
  if (size() < kShortest) return {};
  Draft best;
  std::uint32_t best_end = 0, looks = 0;
  for (std::uint32_t end = last_[bucket(size())]; end != kNowhere && looks < kLooks; end = before_[end], ++looks) {
    const std::uint32_t n = length_of_match(end);
    if (n < kShortest || n <= best.match) continue;
    best.match = n;
    best_end = end;
    if (n == kLongestMatch) break;
  }
  if (best.match == 0) return {};
  const std::uint32_t n = std::min({most, kMost, best.match + kBeyond}), n_there = size() - best_end;
  best.begin = best_end;
  if (n <= n_there) {
    best.tokens = part(best_end, n);
    return best;
  }
  for (std::uint32_t i = 0; i < n; ++i) repeated_[i] = i < n_there ? text_[best_end + i] : repeated_[i - n_there];
  best.tokens = std::span(repeated_).first(n);
  return best;
}

}  // namespace zinc_rt::spec
