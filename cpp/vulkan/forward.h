// Forward records the commands that run a model on a Vulkan device: the body (embeddings and layers) and the head
// (logits). Both are recorded once, when the model is opened. The recorded commands read what changes from step to
// step, including the numbers of workgroups, from the step descriptor in device memory.
// Thread rule: one thread at a time, as for Device.
#pragma once

#include "vulkan/model_memory.h"

namespace zinc_rt::vulkan {

// StepRows tells how many rows a step has: tokens, runs (neighbouring tokens of one slot), and output rows.
struct StepRows {
  std::uint32_t n_tokens = 0, n_runs = 0, n_outputs = 0;
  std::uint32_t n_chunks = 0;  // chunks of 128 positions in attention, up to the largest position
};

class Forward {
 public:
  // Records the commands of a model. `is_quantized`: rows are quantized before they are multiplied by quantized weights
  // (docs/arithmetic.md, rules 3 and 4). The referenced objects must outlive the result.
  static Result<Forward> record(Device& device, const MemoryRequest& model, const ModelMemory& memory,
                                bool is_quantized);

  // Writes the numbers of rows, and of workgroups, for the commands that run next.
  void set_rows(const StepRows& rows);
  // Returns the commands for the embeddings and all layers, for a step of this many tokens.
  VkCommandBuffer body(std::size_t n_tokens) const { return bodies_[kind_of(n_tokens)]; }
  // Returns the commands that compute the logits of the output rows. Run them after a body.
  VkCommandBuffer head(std::size_t n_outputs) const { return heads_[kind_of(n_outputs)]; }
  // Commands to run after the head, one of the two. largest_logits() finds the token with the largest logit of each
  // row. logits_copy() copies the logits to memory that the host reads.
  VkCommandBuffer largest_logits() const { return largest_logits_; }
  VkCommandBuffer logits_copy() const { return logits_copy_; }
  // For diagnostics. Records the embeddings and the first n_layers layers, after which the residual stream is in
  // `hidden`. The caller frees the commands.
  Result<VkCommandBuffer> record_stream(Device& device, const MemoryRequest& model, std::size_t n_tokens,
                                        std::size_t n_layers);

 private:
  // Chooses the kernels by how many rows a product computes at a time. All of them compute the same bits.
  enum Kind : std::uint8_t { kOne, kFew, kMany, kKinds };
  static Kind kind_of(std::size_t n_rows) { return n_rows <= 1 ? kOne : n_rows < kManyTokens ? kFew : kMany; }
  // The number of a dispatch's workgroups is proportional to one of these: rows, or tiles of rows in a product.
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
  // How the workgroups of a dispatch are arranged. kPlain: a number of workgroups per row. kByRows: rows are the first
  // dimension, so that neighbouring workgroups share the other operand. kByChunks: chunks are a third dimension.
  enum class Grid : std::uint8_t { kPlain, kByRows, kByChunks };
  struct Counts {
    std::uint32_t n;
    Rows rows;
    Grid grid;
    bool operator==(const Counts&) const = default;
  };
  // Returns where, in the step descriptor, the numbers of workgroups for such a dispatch are. A new entry is appended
  // to `counts`.
  static std::uint64_t count_offset(std::vector<Counts>& counts, const Counts& entry);
  struct Walk;  // defined in walk.h

  ModelMemory const* memory_ = nullptr;
  // The dispatches' numbers of workgroups that each step must compute; entry i belongs to place i in the step
  // descriptor.
  std::vector<Counts> counts_;
  std::uint32_t n_choices_ = 0;  // how many experts each token chooses
  bool is_quantized_ = false;
  VkCommandBuffer bodies_[kKinds] = {}, heads_[kKinds] = {};
  VkCommandBuffer largest_logits_ = nullptr, logits_copy_ = nullptr;
};

}  // namespace zinc_rt::vulkan
