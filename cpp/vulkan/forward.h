// Walks a model and records its commands: the body (embeddings and layers) and the head. Each is recorded once. What
// changes from step to step, including the numbers of workgroups, is read from the step descriptor.
// Thread rule: as Device.
#pragma once

#include "vulkan/model_memory.h"

namespace zinc_rt::vulkan {

// The number of rows in a step: tokens, runs (neighbouring tokens of one slot), and output rows.
struct StepRows {
  std::uint32_t n_tokens = 0, n_runs = 0, n_outputs = 0;
  std::uint32_t n_chunks = 0;  // chunks of attention, up to the largest position
};

class Forward {
 public:
  // `is_quantized`: rows are quantized before they are multiplied by quantized weights (docs/arithmetic.md, rules 3 and
  // 4). The references must outlive the object.
  static Result<Forward> record(Device& device, const MemoryRequest& model, const ModelMemory& memory,
                                bool is_quantized);

  // Sets the rows of the next commands.
  void set_rows(const StepRows& rows);
  // Returns the commands for the embeddings and all layers, for a step of this many tokens.
  VkCommandBuffer body(std::size_t n_tokens) const { return bodies_[kind_of(n_tokens)]; }
  // Returns the commands that compute the logits of the output rows. Run them after a body.
  VkCommandBuffer head(std::size_t n_outputs) const { return heads_[kind_of(n_outputs)]; }
  // Run these after a head. largest_logits() finds the token with the largest logit of each row. The other copies the
  // logits to memory that the host reads.
  VkCommandBuffer largest_logits() const { return largest_logits_; }
  VkCommandBuffer logits_copy() const { return logits_copy_; }
  // Records the embeddings and the first n_layers layers. Afterwards the residual stream is in `hidden`. The caller
  // frees the commands.
  Result<VkCommandBuffer> record_stream(Device& device, const MemoryRequest& model, std::size_t n_tokens,
                                        std::size_t n_layers);

 private:
  // How many rows a product computes at a time. It changes no bit.
  enum Kind : std::uint8_t { kOne, kFew, kMany, kKinds };
  static Kind kind_of(std::size_t n_rows) { return n_rows <= 1 ? kOne : n_rows < kManyTokens ? kFew : kMany; }
  // What the workgroups of a grid are counted by: rows, or tiles of rows in a product.
  enum class Rows : std::uint8_t {
    kTokens,
    kTokenTiles,
    kTokenMatrices,
    kTokenFews,
    kChoices,
    kRuns,
    kOutputs,
    kOutputTiles,
    kOutputMatrices,
    kOutputFews,
    kCount
  };
  // The dimensions of a grid. kPlain: a number of workgroups per row. kByRows: rows are the first dimension, so that
  // neighbouring workgroups share the other operand. kByChunks: chunks are a third dimension.
  enum class Grid : std::uint8_t { kPlain, kByRows, kByChunks };
  struct Counts {
    std::uint32_t n;
    Rows rows;
    Grid grid;
    bool operator==(const Counts&) const = default;
  };
  // The offset, in the step descriptor, of a dispatch's numbers of workgroups.
  static std::uint64_t count_offset(std::vector<Counts>& counts, const Counts& entry);
  struct Walk;  // defined in walk.h

  ModelMemory const* memory_ = nullptr;
  std::vector<Counts> counts_;
  std::uint32_t n_choices_ = 0;  // choices of experts per token
  bool is_quantized_ = false;
  VkCommandBuffer bodies_[kKinds] = {}, heads_[kKinds] = {};
  VkCommandBuffer largest_logits_ = nullptr, logits_copy_ = nullptr;
};

}  // namespace zinc_rt::vulkan
