// One step of a model: what goes in and what comes out. Integers and floats only; no tier, no graph.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/sampling.h"

namespace zinc_rt {

// A token of the step after which one is picked. A slot may have several: to verify drafts, one after each of them.
struct OutputRow {
  std::uint32_t token_index = 0;  // in StepInput::token_ids
  std::uint32_t position = 0;     // of the token to come
  Sampling sampling;
  std::span<const std::int32_t> history;  // the tokens up to the row's, prompt first; needed by penalties only
  std::uint32_t n_prompt = 0;             // of them
  std::span<const TokenBias> bias;        // ids outside the vocabulary do nothing
  std::span<const std::int32_t> banned;   // never picked; where all are, there is none
  bool wants_logits = true;               // on_logits gets the row; to bring it to the host costs a step time on a GPU
};
// Entries of bias and banned together that a row may have.
inline constexpr std::uint32_t kMaxBias = 2048;

// The pages of all slots as a device reads them: slot s has the counts[s] pages from ids[s * width]. The memory is the
// caller's and must live during the call.
struct PageTables {
  std::span<const std::uint32_t> ids;
  std::uint32_t width = 0;
  std::span<const std::uint32_t> counts;  // one a slot; rows of slots without tokens in the step are not read
};

// Made to be used again: a step fills it, clear() empties it, and once its vectors have grown nothing is allocated.
struct StepInput {
  // One entry a query token. Tokens of one slot stand together in ascending position.
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> slots;
  // They must cover the positions of the step; pages past a slot's last position are not read.
  PageTables page_tables;
  // By slot, from Executor::rope_variant: the same for all tokens that the slot holds; empty: all 0. The caller's too.
  std::span<const std::uint32_t> rope_variants;
  std::vector<OutputRow> outputs;
  // Called with runs of the rows that want logits, in order: the index of the first row and their logits, row after
  // row. The memory is valid during the call. Set once by those who want logits; clear() keeps it.
  std::function<void(std::uint32_t first_row, std::span<const float> logits)> on_logits;

  // Takes out the tokens, the output rows and the views.
  void clear() {
    token_ids.clear();
    positions.clear();
    slots.clear();
    page_tables = {};
    rope_variants = {};
    outputs.clear();
  }
};

// Recurrent state from one entry to another: entries below max_slots are the slots', the rest are checkpoints.
struct StateCopy {
  std::uint32_t from = 0, to = 0;
};

// A whole KV page, K and V of all layers, onto another.
struct PageCopy {
  std::uint32_t from = 0, to = 0;
};

// To be used again, too.
struct StepOutput {
  // The pick of each row of StepInput::outputs, in their order, or kNoToken. A slot has as many as it has output rows.
  std::vector<std::int32_t> tokens;
};

}  // namespace zinc_rt
