#include "spec/acceptance.h"

#include <algorithm>
#include <bit>

namespace zinc_rt::spec {
namespace {

// A prior probability weighs as much as the outcomes of this many tokens.
constexpr double kPriorTokens = 4;

// The probabilities to assume without experience, one per class of matches. They were measured with 32 answers of a
// small model and 25 edits of a repository.
constexpr double kTypical[] = {0.5, 0.65, 0.8, 0.9, 0.95};

std::size_t class_of_match(std::uint32_t match) {
  const auto width = static_cast<std::size_t>(std::bit_width(match));
  return std::clamp<std::size_t>(width, 2, 6) - 2;
}

}  // namespace

std::size_t Acceptance::class_of(Source source, std::uint32_t match) {
  return static_cast<std::size_t>(source) * kMatches + class_of_match(match);
}

double Acceptance::chance(Source source, std::uint32_t match, double prior) const {
  const Count& c = counts_[class_of(source, match)];
  return (c.accepted + kPriorTokens * prior) / (c.tried + kPriorTokens);
}

void Acceptance::observe(Source source, std::uint32_t match, std::uint32_t tried, std::uint32_t accepted) {
  Count& c = counts_[class_of(source, match)];
  for (std::uint32_t i = 0; i < tried; ++i) {
    c.accepted = kept_ * c.accepted + (i < accepted ? 1 : 0);
    c.tried = kept_ * c.tried + 1;
  }
}

double Experience::chance(Source source, std::uint32_t match) const {
  return acceptance_.chance(source, match, kTypical[class_of_match(match)]);
}

}  // namespace zinc_rt::spec
