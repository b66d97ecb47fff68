#include "spec/drafter.h"

#include <algorithm>

namespace zinc_rt::spec {
namespace {

// Before any token is generated, the expected text is trusted like a match of this many tokens.
constexpr std::uint32_t kTrust = 8;
// Tokens that a grammar forces are trusted like a match of this many tokens. They may still be wrong, because the model
// may spell the forced text in other tokens.
constexpr std::uint32_t kForced = 16;
// A request may allow the whole context for its answer, but most answers are short. So memory is reserved for an answer
// of this many tokens.
constexpr std::uint32_t kUsualAnswer = 4096;

}  // namespace

Drafter::Drafter(std::uint32_t n_prompt, std::uint32_t n_limit, std::uint32_t most,
                 std::span<const std::int32_t> expected)
    : text_(std::min(n_limit, n_prompt + kUsualAnswer) + static_cast<std::uint32_t>(expected.size())),
      most_(most),
      n_expected_(static_cast<std::uint32_t>(expected.size())),
      n_alike_(kTrust) {
  text_.append(expected);
}

void Drafter::append(std::int32_t token) {
  if (at_ < n_expected_) n_alike_ = text_[at_++] == token ? n_alike_ + 1 : 0;
  text_.append({&token, 1});
}

Guess Drafter::guess_of(Source source, std::uint32_t match, std::span<const std::int32_t> tokens,
                        const Experience& tenant) {
  source_ = source;
  match_ = tokens.empty() ? 0 : match;
  if (match_ == 0) return {};
  return {tokens, chance(source, match, tenant)};
}

Guess Drafter::guess(const Experience& tenant) {
  Draft draft = text_.draft(most_);
  // In text_ the expected text is stored before the prompt. The prompt does not continue the expected text, so a guess
  // from the expected text stops at its end.
  if (draft.begin <= n_expected_)
    draft.tokens = draft.tokens.first(std::min<std::size_t>(draft.tokens.size(), n_expected_ - draft.begin));
  if (draft.tokens.empty()) draft.match = 0;
  const std::uint32_t n_left = n_expected_ - at_, n_alike = std::max(n_alike_, 1u);
  const double own = draft.match > 0 ? chance(Source::kOwnText, draft.match, tenant) : 0;
  const double expected = n_left > 0 ? chance(Source::kExpected, n_alike, tenant) : 0;
  if (n_left == 0 || own >= expected) {
    // If tokens were added or left out, the answer has another place in the expected text. The match shows where.
    if (draft.match > n_alike_ && draft.begin < n_expected_) at_ = draft.begin, n_alike_ = draft.match;
    return guess_of(Source::kOwnText, draft.match, draft.tokens, tenant);
  }
  return guess_of(Source::kExpected, n_alike, text_.part(at_, std::min(most_, n_left)), tenant);
}

Guess Drafter::forced(std::span<const std::int32_t> tokens, const Experience& tenant) {
  return guess_of(Source::kGrammar, kForced, tokens, tenant);
}

void Drafter::observe(std::uint32_t n_guessed, std::uint32_t n_right, Experience& tenant) {
  if (match_ == 0 || n_guessed == 0) return;
  const std::uint32_t tried = std::min(n_right + 1, n_guessed);
  acceptance_.observe(source_, match_, tried, n_right);
  tenant.observe(source_, match_, tried, n_right);
}

}  // namespace zinc_rt::spec
