// How often guessed tokens are picked, by the length of the match that the guess follows. Old outcomes fade.
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstdint>

namespace zinc_rt::spec {

// Where a guess came from: an earlier place in the request's text; the text that its client expects; its grammar.
enum class Source : std::uint8_t { kOwnText, kExpected, kGrammar };

class Acceptance {
 public:
  // kept: the fraction of what is known that remains after another token.
  explicit Acceptance(double kept) : kept_(kept) {}

  // Returns the probability that the next token of a guess is picked if all tokens before it were. match: tokens, at
  // least 1. prior: the probability that is assumed while nothing is known.
  double chance(Source source, std::uint32_t match, double prior) const;
  // Records the outcome of a guess: `tried` of its tokens were compared with a pick, and the first `accepted` of them
  // were equal. accepted is tried or tried - 1, since nothing after the first wrong token is compared.
  void observe(Source source, std::uint32_t match, std::uint32_t tried, std::uint32_t accepted);

 private:
  static constexpr std::size_t kMatches = 5;  // classes of matches: 1 to 3 tokens, 4 to 7, 8 to 15, 16 to 31, longer
  struct Count {
    double accepted = 0, tried = 0;
  };
  static std::size_t class_of(Source source, std::uint32_t match);

  double kept_;
  std::array<Count, 3 * kMatches> counts_;
};

// What the requests of a tenant have taught together. A new request is guessed for with this experience, and its own
// outcomes soon outweigh it.
class Experience {
 public:
  double chance(Source source, std::uint32_t match) const;
  void observe(Source source, std::uint32_t match, std::uint32_t tried, std::uint32_t accepted) {
    acceptance_.observe(source, match, tried, accepted);
  }

 private:
  Acceptance acceptance_{0.995};
};

}  // namespace zinc_rt::spec
