// One step of a model: what goes in and what comes out. Integers and floats only; no tier, no graph.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace zinc_rt {

// How one output row picks its token (kernels/common/sample_params.h says how each is used).
struct Sampling {
  std::uint64_t seed = 0;
  float temperature = 0;
  std::uint32_t top_k = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
};

// A row of the step whose logits are wanted.
struct OutputRow {
  std::uint32_t token_index = 0;  // in StepInput::token_ids
  std::uint32_t position = 0;     // of the token to come
  Sampling sampling;
  std::span<const std::int32_t> history;  // the row's tokens so far, prompt first; needed by penalties only
  std::uint32_t n_prompt = 0;             // of them
};

struct StepInput {
  // One entry a query token. Tokens of one slot stand together in ascending position.
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> slots;
  // page_tables[slot]: the slot's pages in order; they must cover its positions. Slots without tokens may be empty.
  std::vector<std::vector<std::uint32_t>> page_tables;
  // rope_variants[slot]: by Executor::rope_variant, the same for all tokens that the slot holds; empty: all 0.
  std::vector<std::uint32_t> rope_variants;
  std::vector<OutputRow> outputs;
  // Called with groups of rows in order: the index of the first row and their logits, row after row. The memory is
  // valid during the call.
  std::function<void(std::uint32_t first_row, std::span<const float> logits)> on_logits;
};

// Recurrent state from one entry to another: entries below max_slots are the slots', the rest are checkpoints.
struct StateCopy {
  std::uint32_t from = 0, to = 0;
};

struct StepOutput {
  std::vector<std::int32_t> tokens;  // one an output row
};

}  // namespace zinc_rt
