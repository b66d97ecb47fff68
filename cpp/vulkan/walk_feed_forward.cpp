// The walk through the part of a layer after attention: a dense feed-forward, experts, or both, and the embedding that
// a layer adds.
#include <cmath>

#include "vulkan/walk.h"

namespace zinc_rt::vulkan {

void Forward::Walk::dense_product(std::size_t i, const Source& x) {
  const LayerTensors& t = model.tensors.layers[i];
  const ActivationPlaces& a = memory.activations;
  products(x, {{t.gate, a.gate}, {t.up, a.up}});
  barrier();
  const Source gated = glu_for(t.down, a.gate, a.up, shape_of(i).ffn_dim, model.shape.activation);
  barrier();
  products(gated, {{t.down, a.y}});
  barrier();
}

void Forward::Walk::dense(std::size_t i) {
  const LayerTensors& t = model.tensors.layers[i];
  const Source x = norm_stream(t.ffn_norm, {&t.gate, &t.up});
  barrier();
  dense_product(i, x);
  add_to_stream(memory.activations.y, t.ffn_post_norm);
}

// Computes the weighted sum of each token's chosen experts into expert_sum.
void Forward::Walk::expert_product(std::size_t i, const Source& router_input, const Source& x) {
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
  const Source gated = glu_for(t.down, a.expert_gate, a.expert_up, s.ffn_dim, model.shape.activation, Rows::kChoices);
  barrier();
  expert_products(gated, true, {{t.down, a.expert_y}});
  barrier();
  dispatch("moe_sum", {}, parts(d, push::kWidth), Rows::kTokens,
           push::MoeSum{at(a.expert_y), at(a.expert_ids), at(a.expert_weights), at(t.down_scale), at(a.expert_sum), d,
                        s.n_used});
  barrier();
}

void Forward::Walk::shared_expert(std::size_t i, const Source& x) {
  const ExpertTensors& t = model.tensors.layers[i].experts;
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t d = model.config.model_dim;
  products(x, {{t.shared_gate, a.gate}, {t.shared_up, a.up}});
  if (t.shared_router.weight != nullptr) products(x, {{t.shared_router, a.shared_router}});
  barrier();
  const Source gated = glu_for(t.shared_down, a.gate, a.up, model.shape.experts.shared_ffn_dim, model.shape.activation);
  barrier();
  products(gated, {{t.shared_down, a.y}});
  barrier();
  if (t.shared_router.weight != nullptr) {
    sigmoid_mul(a.y, a.shared_router, d, 1);
    barrier();
  }
  add_to_stream(a.y, nullptr);
}

// Runs the chosen and the shared experts. The shared expert quantizes its input again, because the rows of the chosen
// experts have overwritten the quantized input.
void Forward::Walk::experts(std::size_t i) {
  const LayerTensors& t = model.tensors.layers[i];
  const ExpertTensors& e = t.experts;
  const ActivationPlaces& a = memory.activations;
  const bool has_shared = e.shared_up.weight != nullptr;
  const Source x = norm_stream(t.ffn_norm, {&e.gate, &e.up, &e.router}, has_shared);
  barrier();
  expert_product(i, x, x);
  add_to_stream(a.expert_sum, t.ffn_post_norm);
  if (has_shared) shared_expert(i, {a.x});
}

// Runs a dense feed-forward and experts side by side. The router's input is the normed stream, scaled by a vector and
// by 1 / sqrt(model_dim). The dense part and the experts each have norms of their own.
void Forward::Walk::dense_and_experts(std::size_t i) {
  const LayerTensors& t = model.tensors.layers[i];
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t d = model.config.model_dim;
  const Source x = norm_stream(t.ffn_norm, {&t.gate, &t.up});
  barrier();
  dense_product(i, x);
  norm(a.y, t.experts.dense_post_norm, a.y, d, d);
  norm(a.hidden, t.experts.router_scale, a.expert_sum, d, d);
  norm(a.hidden, t.experts.norm, a.x, d, d);
  barrier();
  scale(a.expert_sum, d, 1.0f / std::sqrt(static_cast<float>(d)));
  barrier();
  expert_product(i, {a.expert_sum}, {a.x});
  norm(a.expert_sum, t.experts.post_norm, a.expert_sum, d, d);
  barrier();
  add(a.y, a.expert_sum, d);
  barrier();
  add_to_stream(a.y, t.ffn_post_norm);
}

// Computes the embeddings that layers add, for all layers at once: (the table's row + the normed projection of the
// stream) / sqrt(2).
void Forward::Walk::layer_embeddings() {
  const ModelTensors& t = model.tensors;
  const ActivationPlaces& a = memory.activations;
  const std::uint32_t n = model.shape.layer_embedding_dim, all = n * model.config.n_layers;
  embed(t.layer_embeddings, std::sqrt(static_cast<float>(n)), a.layer_rows);
  products({a.hidden}, {{t.layer_embed_projection, a.layer_embeddings}});
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
  settle_stream();
  slice(a.layer_embeddings, a.up, 1, model.config.n_layers * n, static_cast<std::uint32_t>(i) * n, n);
  products({a.hidden}, {{t.embed_gate, a.gate}});
  barrier();
  const Source gated = glu_for(t.embed_output, a.gate, a.up, n, zinc_rt::push::kGeluTanh);
  barrier();
  products(gated, {{t.embed_output, a.y}});
  barrier();
  add_to_stream(a.y, t.embed_post_norm);
}

}  // namespace zinc_rt::vulkan
