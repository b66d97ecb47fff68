// The input and output of one step of a model: token ids, positions, page tables, picks. The runner fills the input;
// every executor reads it and fills the output. Nothing here depends on a tier or a graph.
// Thread rule: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/output_row.h"

namespace zinc_rt {

// The page tables of all slots, in the form that a device reads. Slot s has counts[s] pages, beginning at ids[s *
// width]. The caller owns the memory, which must stay valid during the call.
struct PageTables {
  std::span<const std::uint32_t> ids;
  std::uint32_t width = 0;
  // Number of pages per slot; the number of a slot without tokens in the step is not read.
  std::span<const std::uint32_t> counts;
};

// SlotRun says which tokens of a slot are guesses, for models with recurrent state (ExecutorInfo::state_guesses). The
// picks after the tokens before it verify a guess. A guess does not change the slot's state, because a state cannot be
// taken back. The next step of the slot names the guesses that were right, and they change the state then.
struct SlotRun {
  std::uint32_t slot = 0;
  // The number of guesses in the slot's last step that were right: the tokens before the slot's first token in this
  // step. 0 if the last step had no guesses.
  std::uint32_t n_replayed = 0;
  std::uint32_t n_guessed = 0;  // the slot's last n_guessed tokens in this step are guesses; its first token is none
  // If save_at > 0: copies the state after save_at tokens of the text to the entry save_to, a checkpoint. It must be
  // the state after one of the replayed tokens.
  std::uint32_t save_at = 0, save_to = 0;
};

// StepInput is the input of a step. Reuse one object: clear() empties it, and once its vectors have grown nothing is
// allocated.
struct StepInput {
  // token_ids, positions and slots have one element per query token. The tokens of a slot are consecutive, in ascending
  // positions.
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> slots;
  // The tables must cover the positions of the step. Pages after a slot's last position are not read.
  PageTables page_tables;
  // Index: slot; values from Executor::rope_variant(). All tokens of a slot use the same variant. Empty: all use
  // variant 0. The caller owns this memory too.
  std::span<const std::uint32_t> rope_variants;
  // Index: query token; only for models with token types (config.n_token_types). Empty: all have type 0.
  std::vector<std::int32_t> token_types;
  // In the order of the slots' tokens. Slots without a run have neither guesses nor replayed tokens.
  std::vector<SlotRun> runs;
  std::vector<OutputRow> outputs;
  // Called with groups of consecutive rows that want logits, in order. Arguments: the index of the first row, and the
  // logits of all rows, one row after another. The memory is valid during the call. Set the function once; clear()
  // keeps it.
  std::function<void(std::uint32_t first_row, std::span<const float> logits)> on_logits;

  // Called with groups of consecutive rows that want logprobs (OutputRow::n_logprobs), in order. The memory is valid
  // during the call. Set the function once; clear() keeps it.
  std::function<void(std::uint32_t first_row, std::span<const RowLogprobs> rows)> on_logprobs;

  // Called instead of on_logits for models with pooling, with groups of consecutive output rows, in order. Arguments:
  // the index of the first row, and the embeddings of all rows, one row after another, each ExecutorInfo::embedding_dim
  // wide. The memory is valid during the call. Set the function once; clear() keeps it.
  std::function<void(std::uint32_t first_row, std::span<const float> embeddings)> on_embeddings;

  // Called with the index of each masked row, in order, before any row of its group is picked; a device computes the
  // logits meanwhile. The function returns the row's mask. Bit t % 32 of word t / 32 allows token t; tokens after the
  // last word are not allowed. An empty mask allows all tokens. If a mask allows no token, the pick is kNoToken. The
  // mask's memory must stay valid until the step ends. Set the function once; clear() keeps it.
  std::function<std::span<const std::uint32_t>(std::uint32_t row)> mask;

  // Called with each processed row, in order, before any row of its group is picked. Arguments: the row's index, and
  // its logits, which the function may change. on_logits gets the unchanged logits. Set the function once; clear()
  // keeps it.
  std::function<void(std::uint32_t row, std::span<float> logits)> process;

  // The features of the query tokens, one row after another, each ExecutorInfo::reads.width wide. Only for executors that
  // read them. The caller owns the memory.
  std::span<const float> features;

  // Called once with the features of all query tokens, if the executor gives them. The memory is valid during the call.
  // Set the function once; clear() keeps it.
  std::function<void(std::span<const float> features)> on_features;

  // Removes the tokens, the output rows and the views.
  void clear() {
    token_ids.clear();
    positions.clear();
    slots.clear();
    token_types.clear();
    page_tables = {};
    rope_variants = {};
    runs.clear();
    outputs.clear();
    features = {};
  }
};

// Returns whether the step may begin while another one runs, on an executor that runs ahead: the host takes part in none
// of its picks and wants none of its logits, and each slot has one token and replays none. The device picks each token by
// itself then, from operands that are small enough to be kept twice.
inline bool can_run_ahead(const StepInput& input) {
  const auto is_simple = [](const OutputRow& row) {
    return row.history.empty() && row.bias.empty() && row.banned.empty() && !row.is_masked && !row.is_processed &&
           !row.wants_logits;
  };
  const bool one_each = std::ranges::adjacent_find(input.slots) == input.slots.end();
  return one_each && input.runs.empty() && std::ranges::all_of(input.outputs, is_simple);
}

// StateCopy requests a copy of recurrent state from entry `from` to entry `to`. Entries below max_slots are the states
// of slots. All further entries are checkpoints.
struct StateCopy {
  std::uint32_t from = 0, to = 0;
};

// PageCopy requests a copy of the whole KV page `from` (K and V of all layers) to the page `to`.
struct PageCopy {
  std::uint32_t from = 0, to = 0;
};

// StepOutput is the output of a step. Reuse one object, as with the input.
struct StepOutput {
  // tokens[i] is the token that was picked for StepInput::outputs[i], or kNoToken. Empty for models with pooling.
  std::vector<std::int32_t> tokens;
};

}  // namespace zinc_rt
