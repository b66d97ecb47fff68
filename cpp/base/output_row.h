// A row of a step's output: which token it follows, and how the next token is sampled. The step planner creates it and
// executors read it. Thread rule: a plain value; whoever created it owns the memory of its spans.
#pragma once

#include <span>

#include "base/sampling.h"

namespace zinc_rt {

// A slot may have several rows in a step, one after each of its last tokens, to verify a draft.
struct OutputRow {
  std::uint32_t token_index = 0;  // index, among the step's tokens, of the token that this row follows
  std::uint32_t position = 0;     // the position of the token that is sampled
  Sampling sampling;
  std::span<const std::int32_t> history;  // all tokens of the text so far, prompt first; only penalties need them
  std::uint32_t n_prompt = 0;             // how many tokens of `history` are the prompt
  std::span<const TokenBias> bias;        // ids outside the vocabulary do nothing
  std::span<const std::int32_t> banned;   // token ids that are never sampled; if all are banned, the result is kNoToken
  bool is_masked = false;                 // StepInput::mask says which tokens may be sampled
  bool is_processed = false;  // StepInput::process changes the logits before sampling; costs two copies of the row
  bool wants_logits = true;   // on_logits gets the row of logits; on a GPU the copy to the host costs time
};
// The largest total number of entries in bias and banned of one row.
inline constexpr std::uint32_t kMaxBias = 2048;

// The rows of a slot that verify a draft read the same memory: the history of each begins like that of the row before
// it, and its biased and banned tokens begin those of the row before it, since stop tokens are banned from the first
// picks only. An executor copies the shared part once.
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
