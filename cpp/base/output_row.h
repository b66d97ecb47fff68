// OutputRow describes one row of a step's output: which token it follows, and how the next token is sampled. The step
// planner creates it and executors read it. Thread rule: a plain value; whoever created it owns the memory of its
// spans.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/sampling.h"

namespace zinc_rt {

// A token id that stands for the token that was picked last for the same slot. A step that begins before the step
// before it has ended uses it for the tokens that the host does not know yet. All other steps refuse it.
inline constexpr std::int32_t kLastPick = -1;
// A request may ask for the log-probabilities of at most this many of the most likely tokens.
inline constexpr std::uint32_t kMostLogprobs = 128;

// An OutputRow in a step requests the logits after one token, and a token sampled from these logits. A slot may have
// several rows in a step, one after each of its last tokens, to verify drafted tokens.
struct OutputRow {
  std::uint32_t token_index = 0;  // index of the token that this row follows, among the step's tokens
  std::uint32_t position = 0;     // position in the text of the token that is sampled
  Sampling sampling;
  std::span<const std::int32_t> history;  // all tokens of the text so far, prompt first; only penalties read them
  std::uint32_t n_prompt = 0;             // how many tokens of `history` are the prompt
  std::span<const TokenBias> bias;        // added to logits; ids outside the vocabulary have no effect
  std::span<const std::int32_t> banned;   // token ids that are never sampled; if all are banned, the result is kNoToken
  bool is_masked = false;                 // StepInput::mask says which tokens may be sampled
  bool is_processed = false;              // StepInput::process changes the logits before sampling; copies the row twice
  bool wants_logits = true;  // the caller's on_logits receives the row; on a GPU the copy to the host takes time
  // If set, the caller's on_logprobs receives the row, with this many of the most likely tokens. Only for executors
  // with ExecutorInfo::has_logprobs, and not for processed rows, whose logits are not the model's own.
  std::optional<std::uint32_t> n_logprobs = {};
  std::int32_t scored = kNoToken;  // the token whose logit on_logprobs receives; kNoToken: the token that is picked
};

// TokenLogit is a token with its logit. RowLogprobs holds the numbers from which the log-probabilities of a row of
// logits are computed. A token with the logit l has the log-probability l - (max + log(sum)), in float64.
struct TokenLogit {
  std::int32_t id = kNoToken;
  float logit = 0;
};
struct RowLogprobs {
  double sum = 0;   // the sum of e^(l - max) over the row's logits l, in the order of engine/logprobs.h; NaN as there
  float max = 0;    // the largest logit
  float logit = 0;  // the logit of the scored token; 0 if no token was picked
  // The most likely tokens: the larger logit first; of equal ones the lower id first. Fewer than wanted if the row has
  // no more tokens.
  std::span<const TokenLogit> top;
};

// `bias` and `banned` of one row may have at most this many entries together.
inline constexpr std::uint32_t kMaxBias = 2048;

// shares_history() and shares_bias() return whether a row can reuse the history or bias of the row before it, so that
// an executor copies the shared part once. The rows of a slot that verify a draft read the same memory. A row's history
// begins with the previous row's history. A row's lists of biased and banned tokens are beginnings of the previous
// row's lists, because stop tokens are banned only for the first tokens of an answer.
inline bool shares_history(const OutputRow& row, const OutputRow& before) {
  return !before.history.empty() && row.history.data() == before.history.data() &&
         row.history.size() >= before.history.size();
}
inline bool shares_bias(const OutputRow& row, const OutputRow& before) {
  const bool same_bias = row.bias.data() == before.bias.data() && row.bias.size() == before.bias.size();
  const bool same_banned = row.banned.data() == before.banned.data() && row.banned.size() == before.banned.size();
  return same_bias && (same_banned || row.banned.empty());
}

}  // namespace zinc_rt
