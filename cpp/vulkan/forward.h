// Walks a model and records its commands: the embeddings, each layer, the head. They are recorded once; a step changes
// only what they read from the step descriptor, the numbers of workgroups included.
// Thread rule: as Device.
#pragma once

#include "vulkan/model_memory.h"

namespace zinc_rt::vulkan {

// Rows of a step: its tokens, the runs of tokens of one slot, and output rows.
struct StepRows {
  std::uint32_t n_tokens = 0, n_runs = 0, n_outputs = 0;
};

class Forward {
 public:
  // `is_quantized`: rows are quantized before they meet quantized weights (docs/arithmetic.md, rules 3 and 4). The
  // references must live as long as the object.
  static Result<Forward> record(Device& device, const MemoryRequest& model, const ModelMemory& memory,
                                bool is_quantized);

  // Sets the rows of the next commands.
  void set_rows(const StepRows& rows);
  // Of a step of so many tokens.
  VkCommandBuffer embeddings(std::size_t n_tokens) const { return embeddings_[kind_of(n_tokens)]; }
  std::span<const VkCommandBuffer> layers(std::size_t n_tokens) const { return layers_[kind_of(n_tokens)]; }
  // Leaves logits of the output rows.
  VkCommandBuffer head(std::size_t n_outputs) const { return heads_[kind_of(n_outputs)]; }

 private:
  // How many rows a product takes at a time: it changes no bit.
  enum Kind : std::uint8_t { kOne, kFew, kMany, kKinds };
  static constexpr std::size_t kManyTokens = 32;
  static Kind kind_of(std::size_t n_rows) { return n_rows <= 1 ? kOne : n_rows < kManyTokens ? kFew : kMany; }
  enum class Rows : std::uint8_t { kTokens, kTokenTiles, kChoices, kRuns, kOutputs, kOutputTiles, kCount };
  struct Counts {
    std::uint32_t n;
    Rows rows;
    bool is_by_rows;  // rows are the first dimension, so that neighbours share n
    bool operator==(const Counts&) const = default;
  };
  // Where the numbers of workgroups of a dispatch lie in the step descriptor.
  static std::uint64_t count_offset(std::vector<Counts>& counts, const Counts& entry);
  struct Walk;  // walk.h

  ModelMemory const* memory_ = nullptr;
  std::vector<Counts> counts_;
  std::uint32_t n_choices_ = 0;  // of experts, a token
  VkCommandBuffer embeddings_[kKinds] = {}, heads_[kKinds] = {};
  std::vector<VkCommandBuffer> layers_[kKinds];
};

}  // namespace zinc_rt::vulkan
