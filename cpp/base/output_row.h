// A row of a step's output: which token it follows, and how its next token is picked. The planner of steps makes it and
// executors read it. Thread rule: a plain value; its maker owns the memory of its spans.
#pragma once

#include <span>

#include "base/sampling.h"

namespace zinc_rt {

// The token of the step that this row follows. A slot may have several rows: to verify drafts, one after each token.
struct OutputRow {
  std::uint32_t token_index = 0;  // among the tokens of the step
  std::uint32_t position = 0;     // of the token that is picked
  Sampling sampling;
  std::span<const std::int32_t> history;  // the tokens up to the row's, prompt first; needed by penalties only
  std::uint32_t n_prompt = 0;             // how many of them are the prompt
  std::span<const TokenBias> bias;        // ids outside the vocabulary do nothing
  std::span<const std::int32_t> banned;   // never picked; kNoToken where all are banned
  bool is_masked = false;                 // StepInput::mask says which tokens may be picked
  bool is_processed = false;              // StepInput::process changes its logits before the pick; costs two copies
  bool wants_logits = true;               // on_logits gets the row; on a GPU it costs time to bring it to the host
};
// The most entries that bias and banned of a row may have together.
inline constexpr std::uint32_t kMaxBias = 2048;

}  // namespace zinc_rt
