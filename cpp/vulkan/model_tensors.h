// Finds a model's tensors by their role, once, and checks them. Later code never looks up a tensor by its name.
// Thread rule: plain values; they point into the Weights.
#pragma once

#include <vector>

#include "vulkan/family.h"

namespace zinc_rt::vulkan {

// Product is a matrix product: y = x times rows [first_row, first_row + n_rows) of `weight`, plus bias. If the tensor
// is a stack of matrices, the rows are those of each matrix.
struct Product {
  const Tensor* weight = nullptr;  // null: the model has no such product
  const Tensor* bias = nullptr;    // null: no bias
  std::uint32_t first_row = 0, n_rows = 0;
  std::uint32_t width() const { return static_cast<std::uint32_t>(weight->dims[0]); }  // the width of x
};

// AttentionTensors holds the tensors of an attention layer. A pointer is null if the layer has no such tensor.
struct AttentionTensors {
  const Tensor *q_norm = nullptr, *k_norm = nullptr;
  Product q, k, v, output;  // if v has no weight, v is k before its norm
};
struct DeltaTensors {
  // A file has either beta and alpha, or beta_alpha, which holds both for each key head.
  Product qkv, z, beta, alpha, beta_alpha, output;
  const Tensor *conv = nullptr, *a = nullptr, *dt = nullptr, *norm = nullptr;
};
struct ExpertTensors {
  Product router, gate, up, down;  // gate, up and down are stacks with one matrix per expert
  Product shared_gate, shared_up, shared_down, shared_router;
  const Tensor* down_scale = nullptr;
  // Only for layers that have experts beside a dense feed-forward: the scale of the router's input, and the norms of
  // both halves.
  const Tensor *router_scale = nullptr, *norm = nullptr, *post_norm = nullptr, *dense_post_norm = nullptr;
};

struct LayerTensors {
  const Tensor *attn_norm = nullptr, *ffn_norm = nullptr, *attn_post_norm = nullptr, *ffn_post_norm = nullptr;
  AttentionTensors attention;
  DeltaTensors delta;
  Product gate, up, down;  // the dense feed-forward layer
  ExpertTensors experts;
  Product embed_gate, embed_output;  // the products of the embedding that the layer adds
  const Tensor *embed_post_norm = nullptr, *scale = nullptr;
};

struct ModelTensors {
  const Tensor *embeddings = nullptr, *output_norm = nullptr;
  Product head;
  // The next three are set only for models whose layers add embeddings of their own.
  const Tensor *layer_embeddings = nullptr, *layer_embed_norm = nullptr;
  Product layer_embed_projection;
  std::vector<LayerTensors> layers;
  std::vector<const Tensor*> all;  // each tensor that the device needs, once
};

// Returns the model's tensors. Errors name the tensor that is missing, has another shape or type, or is in the file but
// not used by this backend.
Result<ModelTensors> find_tensors(const ModelConfig& config, const ModelShape& shape, const Weights& weights);

}  // namespace zinc_rt::vulkan
