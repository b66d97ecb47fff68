// Acceptance learns how often guessed tokens are picked, from the outcomes of earlier guesses. The longer the match
// before a guess, the likelier it is right, so matches are counted in classes by length. Old outcomes fade.
// Thread rule: one thread at a time.
#pragma once

#include <array>
#include <cstdint>

namespace zinc_rt::spec {

// Source tells where a guess comes from. kOwnText: from an earlier place in the request's own text. kExpected: from the
// text that the client expects. kGrammar: from the request's grammar. kModel: from a draft model.
enum class Source : std::uint8_t { kOwnText, kExpected, kGrammar, kModel };

class Acceptance {
 public:
  // After each further token, the weight of all earlier outcomes is multiplied by `kept`.
  explicit Acceptance(double kept) : kept_(kept) {}

  // Returns the probability that the next token of a guess is picked if all tokens before it were. `match` is the
  // number of matching tokens before the guess, at least 1. `prior` is the probability to assume while no outcome was
  // observed.
  double chance(Source source, std::uint32_t match, double prior) const;
  // Records the outcome of a guess: `tried` of its tokens were compared with a pick, and the first `accepted` of them
  // were equal. `accepted` is tried or tried - 1, because no token after the first wrong one is compared.
  void observe(Source source, std::uint32_t match, std::uint32_t tried, std::uint32_t accepted);

 private:
  // Matches have five classes: 1 to 3 tokens, 4 to 7, 8 to 15, 16 to 31, and 32 or more.
  static constexpr std::size_t kMatches = 5;
  struct Count {
    double accepted = 0, tried = 0;
  };
  static std::size_t class_of(Source source, std::uint32_t match);

  double kept_;
  static constexpr std::size_t kSources = 4;

  std::array<Count, kSources * kMatches> counts_;
};

// Experience holds the outcomes of the guesses for all requests of a tenant. A new request starts from this experience,
// and its own outcomes soon outweigh it.
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
