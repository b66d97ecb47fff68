// Guesses the next tokens of one request, and learns how often its guesses are right. A guess changes no token: a step
// computes the logits after each guessed token, and the token stays only if it is the one that is picked there.
// Thread rule: one thread at a time. append() seldom allocates: when the text has outgrown its memory, it takes twice
// as much.
#pragma once

#include "spec/acceptance.h"
#include "spec/own_text.h"

namespace zinc_rt::spec {

struct Guess {
  std::span<const std::int32_t> tokens;  // valid until the next append(); empty if there is no guess
  double chance = 0;                     // the probability that a token is picked if all tokens before it were
};

class Drafter {
 public:
  // n_prompt, n_limit: the number of tokens of the prompt, and the largest of the whole text. most: the largest number
  // of tokens of a guess. expected: a text that the answer may be like, as the client gave it; may be empty.
  Drafter(std::uint32_t n_prompt, std::uint32_t n_limit, std::uint32_t most,
          std::span<const std::int32_t> expected = {});

  void append_prompt(std::span<const std::int32_t> tokens) { text_.append(tokens); }
  void append(std::int32_t token);
  // Guesses the tokens after the text. Two places are looked at: where the text's last tokens occurred before, and the
  // place in the expected text that the answer has reached if each of its tokens has taken the place of an expected
  // one. The more promising place is taken. tenant: of the request's tenant.
  Guess guess(const Experience& tenant);
  // Guesses these tokens instead, because a grammar leaves little else. They must stay valid as a guess does.
  Guess forced(std::span<const std::int32_t> tokens, const Experience& tenant);
  std::uint32_t most() const { return most_; }
  // Reports that a step computed the first n_guessed tokens of the last guess, and that the first n_right of them were
  // picked.
  void observe(std::uint32_t n_guessed, std::uint32_t n_right, Experience& tenant);

 private:
  double chance(Source source, std::uint32_t match, const Experience& tenant) const {
    return acceptance_.chance(source, match, tenant.chance(source, match));
  }
  Guess guess_of(Source source, std::uint32_t match, std::span<const std::int32_t> tokens, const Experience& tenant);

  OwnText text_;  // the expected text, the prompt, the answer
  Acceptance acceptance_{0.97};
  const std::uint32_t most_, n_expected_;
  std::uint32_t at_ = 0;   // the expected token that comes next
  std::uint32_t n_alike_;  // the answer's last tokens that are those before at_
  // Of the last guess. match_: how many tokens before it were alike; 0 if there was no guess.
  std::uint32_t match_ = 0;
  Source source_ = Source::kOwnText;
};

}  // namespace zinc_rt::spec
