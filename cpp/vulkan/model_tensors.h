// A model's tensors by their role, found once and checked. Later code never looks a tensor up by name.
// Thread rule: plain values; they point into the Weights.
#pragma once

#include <vector>

#include "vulkan/family.h"

namespace zinc_rt::vulkan {

// y = rows [first_row, first_row + n_rows) of a matrix times x, plus bias; for a stack of matrices, of each matrix.
struct Product {
  const Tensor* weight = nullptr;  // null: there is no such product
  const Tensor* bias = nullptr;    // null: none
  std::uint32_t first_row = 0, n_rows = 0;
  std::uint32_t width() const { return static_cast<std::uint32_t>(weight->dims[0]); }  // of x
};

// Null where a layer has none.
struct AttentionTensors {
  const Tensor *q_norm = nullptr, *k_norm = nullptr;
  Product q, k, v, output;  // v without a weight: it is k before its norm
};
struct DeltaTensors {
  Product qkv, z, beta, alpha, beta_alpha, output;  // beta and alpha, or both of a key head's heads side by side
  const Tensor *conv = nullptr, *a = nullptr, *dt = nullptr, *norm = nullptr;
};
struct ExpertTensors {
  Product router, gate, up, down;  // of the last three a matrix an expert
  Product shared_gate, shared_up, shared_down, shared_router;
  const Tensor* down_scale = nullptr;
  // For experts beside a dense feed-forward: the inputs of the router and the experts, and the norms of both halves.
  const Tensor *router_scale = nullptr, *norm = nullptr, *post_norm = nullptr, *dense_post_norm = nullptr;
};

struct LayerTensors {
  const Tensor *attn_norm = nullptr, *ffn_norm = nullptr, *attn_post_norm = nullptr, *ffn_post_norm = nullptr;
  AttentionTensors attention;
  DeltaTensors delta;
  Product gate, up, down;  // of the dense feed-forward
  ExpertTensors experts;
  Product embed_gate, embed_output;  // of the layer's own embedding
  const Tensor *embed_post_norm = nullptr, *scale = nullptr;
};

struct ModelTensors {
  const Tensor *embeddings = nullptr, *output_norm = nullptr;
  Product head;
  // For the embeddings that layers add.
  const Tensor *layer_embeddings = nullptr, *layer_embed_norm = nullptr;
  Product layer_embed_projection;
  std::vector<LayerTensors> layers;
  std::vector<const Tensor*> all;  // that the device needs, each once
};

// Errors name a tensor that is missing, has another shape or type, or that this backend does not use.
Result<ModelTensors> find_tensors(const ModelConfig& config, const ModelShape& shape, const Weights& weights);

}  // namespace zinc_rt::vulkan
