// Walks a model and records its commands: the embeddings, each layer, the head. They are recorded once; a step changes
// only what they read from the step descriptor, the numbers of workgroups included.
// Thread rule: as Device.
#pragma once

#include "vulkan/model_memory.h"

namespace zinc_rt::vulkan {

class Forward {
 public:
  // `is_quantized`: rows are quantized before they meet quantized weights (docs/arithmetic.md, rules 3 and 4). The
  // references must live as long as the object.
  static Result<Forward> record(Device& device, const MemoryRequest& model, const ModelMemory& memory,
                                bool is_quantized);

  // Sets the rows of the next commands.
  void set_rows(std::uint32_t n_tokens, std::uint32_t n_outputs);
  VkCommandBuffer embeddings() const { return embeddings_; }
  // Of a step of so many tokens.
  std::span<const VkCommandBuffer> layers(std::size_t n_tokens) const { return layers_[n_tokens >= kManyTokens]; }
  VkCommandBuffer head() const { return head_; }  // leaves logits of the output rows

 private:
  // From so many tokens on a product takes several rows at a time. It changes no bit.
  static constexpr std::size_t kManyTokens = 16;
  enum class Rows : std::uint8_t { kTokens, kTokenTiles, kOutputs };
  struct Counts {
    std::uint32_t x;
    Rows rows;
    bool operator==(const Counts&) const = default;
  };
  // A product and where it goes.
  struct Target {
    const Product& product;
    Place y;
  };
  struct Walk;  // forward.cpp

  ModelMemory const* memory_ = nullptr;
  std::vector<Counts> counts_;
  VkCommandBuffer embeddings_ = nullptr, head_ = nullptr;
  std::vector<VkCommandBuffer> layers_[2];  // for few tokens and for many
};

}  // namespace zinc_rt::vulkan
