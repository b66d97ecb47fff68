// What follows the mixing of tokens: a dense feed-forward, experts, or both, and a layer's own embeddings.
#include <cmath>

#include "vulkan/walk.h"

namespace zinc_rt::vulkan {

void Forward::Walk::dense_product(std::size_t i) {
  const LayerTensors& t = model.tensors.layers[i];
  const ActivationPlaces& a = memory.activations;
  products(a.x, {{t.gate, a.gate}, {t.up, a.up}});
  barrier();
  glu(a.gate, a.up, a.gate, shape_of(i).ffn_dim, model.shape.activation);
  barrier();
  products(a.gate, {{t.down, a.y}});
  barrier();
}

void Forward::Walk::dense(std::size_t i) {
  dense_product(i);
  add_to_stream(memory.activations.y, model.tensors.layers[i].ffn_post_norm);
}

// Leaves the weighted sum of a token's chosen experts in expert_sum.
void Forward::Walk::expert_product(std::size_t i, Place router_input, Place x) {
  const ExpertShape& s = model.shape.experts;
  const ExpertTensors& t = model.tensors.layers[i].experts;
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t d = model.config.model_dim;
  products(router_input, {{t.router, a.router}});
  barrier();
  dispatch("moe_gate_topk", {}, 1, Rows::kTokens,
           push::MoeGateTopk{at(a.router), at(a.expert_ids), at(a.expert_weights), s.n, s.n_used, s.weights_scale});
  barrier();
  expert_products(x, false, {{t.gate, a.expert_gate}, {t.up, a.expert_up}});
  barrier();
  glu(a.expert_gate, a.expert_up, a.expert_gate, s.n_used * s.ffn_dim, model.shape.activation);
  barrier();
  expert_products(a.expert_gate, true, {{t.down, a.expert_y}});
  barrier();
  dispatch("moe_sum", {}, parts(d, push::kWidth), Rows::kTokens,
           push::MoeSum{at(a.expert_y), at(a.expert_ids), at(a.expert_weights), at(t.down_scale), at(a.expert_sum), d,
                        s.n_used});
  barrier();
}

void Forward::Walk::shared_expert(std::size_t i) {
  const ExpertTensors& t = model.tensors.layers[i].experts;
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t d = model.config.model_dim;
  products(a.x, {{t.shared_gate, a.gate}, {t.shared_up, a.up}});
  if (t.shared_router.weight != nullptr) products(a.x, {{t.shared_router, a.shared_router}});
  barrier();
  glu(a.gate, a.up, a.gate, model.shape.experts.shared_ffn_dim, model.shape.activation);
  barrier();
  products(a.gate, {{t.shared_down, a.y}});
  barrier();
  if (t.shared_router.weight != nullptr) {
    sigmoid_mul(a.y, a.shared_router, d, 1);
    barrier();
  }
  add_to_stream(a.y, nullptr);
}

void Forward::Walk::experts(std::size_t i) {
  const LayerTensors& t = model.tensors.layers[i];
  const ActivationPlaces& a = memory.activations;
  expert_product(i, a.x, a.x);
  add_to_stream(a.expert_sum, t.ffn_post_norm);
  if (t.experts.shared_up.weight != nullptr) shared_expert(i);
}

// The router sees the stream normed and scaled by a vector and by 1 / sqrt(model_dim); both halves have norms of their
// own.
void Forward::Walk::dense_and_experts(std::size_t i) {
  const LayerTensors& t = model.tensors.layers[i];
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t d = model.config.model_dim;
  dense_product(i);
  norm(a.y, t.experts.dense_post_norm, a.y, d, d);
  norm(a.hidden, t.experts.router_scale, a.expert_sum, d, d);
  norm(a.hidden, t.experts.norm, a.x, d, d);
  barrier();
  scale(a.expert_sum, d, 1.0f / std::sqrt(static_cast<float>(d)));
  barrier();
  expert_product(i, a.expert_sum, a.x);
  norm(a.expert_sum, t.experts.post_norm, a.expert_sum, d, d);
  barrier();
  add(a.y, a.expert_sum, d);
  barrier();
  add_to_stream(a.y, t.ffn_post_norm);
}

// Of all layers: (the table's row + the normed projection of the stream) / sqrt(2).
void Forward::Walk::layer_embeddings() {
  const ModelTensors& t = model.tensors;
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t n = model.shape.layer_embedding_dim, all = n * model.config.n_layers;
  embed(t.layer_embeddings, std::sqrt(static_cast<float>(n)), a.layer_rows);
  products(a.hidden, {{t.layer_embed_projection, a.layer_embeddings}});
  barrier();
  scale(a.layer_embeddings, all, 1.0f / std::sqrt(static_cast<float>(model.config.model_dim)));
  barrier();
  norm(a.layer_embeddings, t.layer_embed_norm, a.layer_embeddings, all, n);
  barrier();
  add(a.layer_embeddings, a.layer_rows, all);
  barrier();
  scale(a.layer_embeddings, all, std::sqrt(0.5f));
  barrier();
}

void Forward::Walk::add_layer_embedding(std::size_t i) {
  const LayerTensors& t = model.tensors.layers[i];
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t n = model.shape.layer_embedding_dim;
  slice(a.layer_embeddings, a.up, 1, model.config.n_layers * n, static_cast<std::uint32_t>(i) * n, n);
  products(a.hidden, {{t.embed_gate, a.gate}});
  barrier();
  glu(a.gate, a.up, a.gate, n, zinc_rt::push::kGeluTanh);
  barrier();
  products(a.gate, {{t.embed_output, a.y}});
  barrier();
  add_to_stream(a.y, t.embed_post_norm);
}

}  // namespace zinc_rt::vulkan
