// Drafter guesses the next tokens of one request and learns how often its guesses are right. The step loop calls
// guess() before each step. A guess never changes the answer: the step computes the logits after each guessed token,
// and a guessed token is used only if the same token is picked from these logits.
// Thread rule: one thread at a time. append() seldom allocates: only when the text exceeds its memory, which is then
// doubled.
#pragma once

#include "spec/acceptance.h"
#include "spec/own_text.h"

namespace zinc_rt::spec {

struct Guess {
  std::span<const std::int32_t> tokens;  // valid until the next append(); empty: no guess
  double chance = 0;                     // probability that a token of the guess is picked if all tokens before it were
};

class Drafter {
 public:
  // n_prompt: tokens of the prompt. n_limit: the most tokens of prompt and answer together. most: the most tokens of a
  // guess. expected: tokens that the client expects the answer to resemble (its prediction); may be empty.
  Drafter(std::uint32_t n_prompt, std::uint32_t n_limit, std::uint32_t most,
          std::span<const std::int32_t> expected = {});

  void append_prompt(std::span<const std::int32_t> tokens) { text_.append(tokens); }
  void append(std::int32_t token);
  // Guesses the tokens that follow the text. It compares two sources. One is an earlier place in the text where the
  // last tokens occurred before. The other is the expected text, at the place that the answer has reached if each token
  // of the answer has replaced a token of the expected text. The source with the higher probability is used. `tenant`
  // is the experience of the request's tenant.
  Guess guess(const Experience& tenant);
  // Uses these tokens as the guess, because a grammar allows little else. The memory of `tokens` must stay valid until
  // the next append().
  Guess forced(std::span<const std::int32_t> tokens, const Experience& tenant);
  // Returns the probability that a token of a draft model's guess is picked if all tokens before it were.
  double chance_of_model(const Experience& tenant) const { return chance(Source::kModel, kOfModel, tenant); }
  // Uses these tokens as the guess, because a draft model chose them. Their memory must stay valid until the next
  // append().
  Guess of_model(std::span<const std::int32_t> tokens, const Experience& tenant) {
    return guess_of(Source::kModel, kOfModel, tokens, tenant);
  }
  std::uint32_t most() const { return most_; }
  // Reports the outcome of the last guess: a step computed its first n_guessed tokens, and the first n_right of them
  // were picked.
  void observe(std::uint32_t n_guessed, std::uint32_t n_right, Experience& tenant);

 private:
  // A draft model without experience is trusted like a match of this many tokens.
  static constexpr std::uint32_t kOfModel = 4;

  double chance(Source source, std::uint32_t match, const Experience& tenant) const {
    return acceptance_.chance(source, match, tenant.chance(source, match));
  }
  Guess guess_of(Source source, std::uint32_t match, std::span<const std::int32_t> tokens, const Experience& tenant);

  OwnText text_;  // the expected text, then the prompt and the answer
  Acceptance acceptance_{0.97};
  const std::uint32_t most_, n_expected_;
  std::uint32_t at_ = 0;   // index of the expected token that comes next
  std::uint32_t n_alike_;  // how many of the answer's last tokens equal the expected tokens before index at_
  // Describe the last guess, for observe(). match_ is the number of matching tokens before the guess; 0: there was no
  // guess.
  std::uint32_t match_ = 0;
  Source source_ = Source::kOwnText;
};

}  // namespace zinc_rt::spec
