// The tensors of a model by the part that they play, found once and checked: nothing past this asks for a name.
// Thread rule: plain values; they point into the Weights.
#pragma once

#include <vector>

#include "vulkan/family.h"

namespace zinc_rt::vulkan {

// y = rows [first_row, first_row + n_rows) of a matrix times x, plus bias.
struct Product {
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;  // null: none
  std::uint32_t first_row = 0, n_rows = 0;
  std::uint32_t width() const { return static_cast<std::uint32_t>(weight->dims[0]); }  // of x
};

struct LayerTensors {
  const Tensor *attn_norm = nullptr, *ffn_norm = nullptr;
  const Tensor *q_norm = nullptr, *k_norm = nullptr;                 // null: none
  const Tensor *attn_post_norm = nullptr, *ffn_post_norm = nullptr;  // null: none
  Product q, k, v, attn_output, gate, up, down;
};

struct ModelTensors {
  const Tensor *embeddings = nullptr, *output_norm = nullptr;
  Product head;
  std::vector<LayerTensors> layers;
  std::vector<const Tensor*> all;  // that the device needs, each once
};

// Errors name the tensor: one that is missing, has another shape or type, or that this backend has no use for.
Result<ModelTensors> find_tensors(const ModelConfig& config, const ModelShape& shape, const Weights& weights);

}  // namespace zinc_rt::vulkan
