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
  VkCommandBuffer embeddings(std::size_t n_tokens) const { return embeddings_[n_tokens >= kManyTokens]; }
  std::span<const VkCommandBuffer> layers(std::size_t n_tokens) const { return layers_[n_tokens >= kManyTokens]; }
  VkCommandBuffer head() const { return head_; }  // leaves logits of the output rows

 private:
  // From so many tokens on a product takes several rows at a time. It changes no bit.
  static constexpr std::size_t kManyTokens = 16;
  enum class Rows : std::uint8_t { kTokens, kTokenTiles, kChoices, kRuns, kOutputs, kCount };
  struct Counts {
    std::uint32_t x;
    Rows rows;
    bool operator==(const Counts&) const = default;
  };
  // Where the numbers of workgroups of a dispatch lie in the step descriptor.
  static std::uint64_t count_offset(std::vector<Counts>& counts, const Counts& entry);
  struct Walk;  // walk.h

  ModelMemory const* memory_ = nullptr;
  std::vector<Counts> counts_;
  std::uint32_t n_choices_ = 0;                          // of experts, a token
  VkCommandBuffer embeddings_[2] = {}, head_ = nullptr;  // [2]: for few tokens and for many
  std::vector<VkCommandBuffer> layers_[2];
};

}  // namespace zinc_rt::vulkan
