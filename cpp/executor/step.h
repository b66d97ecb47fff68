// One step of a model: what goes in and what comes out. These are integers and floats; no tier and no graph is named.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/output_row.h"

namespace zinc_rt {

// The pages of all slots as a device reads them: slot s has counts[s] pages, from ids[s * width] on. The caller owns
// the memory, which must live during the call.
struct PageTables {
  std::span<const std::uint32_t> ids;
  std::uint32_t width = 0;
  std::span<const std::uint32_t> counts;  // by slot; those without tokens in the step are not read
};

// The input of a step. It is used again and again: clear() empties it, and once its vectors have grown nothing is
// allocated.
struct StepInput {
  // These three have one entry for each query token. The tokens of one slot stand together, in ascending positions.
  std::vector<std::int32_t> token_ids;
  std::vector<std::int32_t> positions;
  std::vector<std::int32_t> slots;
  // They must cover the positions of the step. Pages after the last position of a slot are not read.
  PageTables page_tables;
  // By slot, from Executor::rope_variant; all tokens that a slot holds have the same one. Empty: all are 0. The caller
  // owns this memory, too.
  std::span<const std::uint32_t> rope_variants;
  // One entry for each query token, of models with token types (config.n_token_types), or empty: all are of type 0.
  std::vector<std::int32_t> token_types;
  std::vector<OutputRow> outputs;
  // Called with consecutive rows that want logits, in order: the index of the first row, and the logits of all of them,
  // row after row. The memory is valid during the call. It is set once by who wants logits; clear() keeps it.
  std::function<void(std::uint32_t first_row, std::span<const float> logits)> on_logits;

  // Of models with pooling: called with consecutive output rows, in order: the index of the first, and the embeddings
  // of all of them, row after row, ExecutorInfo::embedding_dim wide, as pooling leaves them. As on_logits otherwise,
  // which is not called then.
  std::function<void(std::uint32_t first_row, std::span<const float> embeddings)> on_embeddings;

  // Called for each row that is masked, in order, with its index, before any row of its group is picked. A device
  // computes the logits meanwhile. Bit t % 32 of word t / 32 allows token t; those past the last word are not allowed.
  // Empty: all are. kNoToken where none is. The memory is valid until the step ends. It is set once, as on_logits.
  std::function<std::span<const std::uint32_t>(std::uint32_t row)> mask;

  // Called for each row that is processed, in order, with its index and its logits to be changed, before any row of its
  // group is picked. on_logits gets what was there before. It is set once, as on_logits.
  std::function<void(std::uint32_t row, std::span<float> logits)> process;

  // Removes the tokens, the output rows and the views.
  void clear() {
    token_ids.clear();
    positions.clear();
    slots.clear();
    token_types.clear();
    page_tables = {};
    rope_variants = {};
    outputs.clear();
  }
};

// Copies recurrent state from one entry to another. Entries below max_slots belong to the slots, the others are
// checkpoints.
struct StateCopy {
  std::uint32_t from = 0, to = 0;
};

// Copies a whole KV page, K and V of all layers, onto another.
struct PageCopy {
  std::uint32_t from = 0, to = 0;
};

// The output of a step; it is used again, too.
struct StepOutput {
  // The pick of each row of StepInput::outputs, in their order, or kNoToken. A slot has as many as it has output rows.
  // Empty for models with pooling.
  std::vector<std::int32_t> tokens;
};

}  // namespace zinc_rt
