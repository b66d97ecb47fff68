// Builds the graph of Gemma 4: dense models, models with experts, and those with an embedding per layer (E2B, E4B). It
// differs from Gemma 3 in these points:
// - Sliding and global layers differ in head size, RoPE and number of key-value heads. Attention scores are not scaled.
// - v has a norm without weights. Layers without attn_v compute v from k's projection.
// - The last layers write no K and V. Each of them reads the K and V of the last earlier layer of its kind.
// - RoPE of global layers rotates only some pairs: rope_freqs.weight divides the frequencies of all other pairs by
// 1e30.
// - Experts, if present, run in parallel to the dense feed-forward. Each of the two is followed by a norm.
// - Each layer may add a gated embedding of the token, and scales its output.
#include "arch/gemma4.h"

#include <cmath>

#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"gemma4"};

std::uint64_t dim(std::uint32_t heads, std::uint32_t head_dim) {
  return std::uint64_t{heads} * head_dim;
}

// Computes the embeddings that the layers add, [tokens, n_layers * per_layer_embedding_dim], as (row of the per-layer
// table + normed projection of the residual stream) / sqrt(2).
BufferId embed_layers(Builder& b, BufferId hidden) {
  const ModelConfig& c = b.config();
  const std::uint32_t n = c.per_layer_embedding_dim, all = c.n_layers * n;
  const BufferId table = b.weight("layer_embed_table", "per_layer_token_embd.weight", {c.vocab_size, all});
  const BufferId rows = b.embed("layer_embed", b.token_ids(), table, std::sqrt(static_cast<float>(n)));
  const Matrix projection{b.weight("layer_embed_projection", "per_layer_model_proj.weight", {all, c.model_dim})};
  const BufferId projected = project(b, "layer_embed_projected", hidden, projection);
  const BufferId scaled = b.scale("layer_embed_scaled", projected, 1.0f / std::sqrt(static_cast<float>(c.model_dim)));
  const BufferId norm =
      b.rms_norm("layer_embed_norm", scaled, b.weight("layer_embed_norm_weight", "per_layer_proj_norm.weight", {n}),
                 static_cast<float>(c.norm_eps), n);
  b.add_into(norm, rows);
  return b.scale("layer_embeddings", norm, std::sqrt(0.5f));
}

void add_layer_embedding(Builder& b, std::uint32_t layer, BufferId layer_embeddings, BufferId hidden) {
  const std::uint32_t n = b.config().per_layer_embedding_dim;
  const BufferId gate = project(b, "embed_gate", "embed.gate", hidden, "inp_gate", n);
  const BufferId row = b.slice(b.at_layer("embed_row"), layer_embeddings, b.config().n_layers * n, layer * n, n);
  const BufferId gated = b.glu(b.at_layer("embed_gated"), gate, row, push::kGeluTanh);
  const BufferId out = project(b, "embed_out", "embed.out", gated, "proj", b.config().model_dim);
  b.add_into(hidden, row_norm(b, "embed_post_norm", out, "post_norm"));
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.is_sliding.empty()) {
    b.refuse("key gemma4.attention.sliding_window_pattern is missing");
    return b.finish();
  }
  const BufferId hidden = embed_tokens(b, std::sqrt(static_cast<float>(c.model_dim)));
  const BufferId layer_embeddings = c.per_layer_embedding_dim > 0 ? embed_layers(b, hidden) : ir::kNoBuffer;
  Gemma4Layers layers(b, hidden, c.sliding_window);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    layers.attention(layer);
    layers.feed_forward(layer);
    if (layer_embeddings != ir::kNoBuffer) add_layer_embedding(b, layer, layer_embeddings, hidden);
    layers.scale();
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return Gemma4Layers::rope_tables(c, weights, 0);
}

}  // namespace

Gemma4Layers::Gemma4Layers(Builder& b, BufferId hidden, std::uint32_t window)
    : b_(b), c_(b.config()), hidden_(hidden), window_(window) {
  global_rope_ = config_rope(b_, true);
  sliding_rope_ = {b_.constant("rope_sliding", {b_.options().max_context, c_.sliding_rope_dim}), b_.positions(),
                   c_.sliding_rope_dim, true};
  b_.optional_f32("rope_freqs", std::string(kDivisors), {c_.rope_dim / 2});
}

void Gemma4Layers::attention(std::uint32_t layer) {
  const bool sliding = c_.is_sliding[layer];
  const AttentionShape s{c_.n_heads,
                         c_.n_kv_heads_per_layer[layer],
                         sliding ? c_.sliding_head_dim : c_.head_dim,
                         sliding ? c_.sliding_v_head_dim : c_.v_head_dim,
                         1.0f,
                         sliding ? window_ : 0,
                         static_cast<float>(c_.attention_softcap)};
  const Rope& rope = sliding ? sliding_rope_ : global_rope_;
  const BufferId x = row_norm(b_, "attn_norm", hidden_, "attn_norm");
  const BufferId q = head_norm(b_, "q_norm", project(b_, "q", "attn.q", x, "attn_q", dim(s.n_heads, s.head_dim)),
                               "attn_q_norm", s.head_dim);
  BufferId y;
  auto& cache = caches_[sliding];
  if (layer + c_.n_shared_kv_layers >= c_.n_layers) {
    y = b_.flash_attn(b_.at_layer("attn"), rotate(b_, "q_rot", q, rope, s.head_dim), cache.k, cache.v,
                      {s.n_heads, s.n_kv_heads, s.head_dim, s.v_head_dim, s.scale, s.window, s.softcap});
  } else {
    const BufferId k = project(b_, "k", "attn.k", x, "attn_k", dim(s.n_kv_heads, s.head_dim));
    const BufferId v =
        b_.layer_has("attn_v.weight") ? project(b_, "v", "attn.v", x, "attn_v", dim(s.n_kv_heads, s.v_head_dim)) : k;
    const BufferId v_norm = b_.rms_norm(b_.at_layer("v_norm"), v, ir::kNoBuffer, eps(), s.v_head_dim);
    y = attend(b_, {q, head_norm(b_, "k_norm", k, "attn_k_norm", s.head_dim), v_norm}, s, rope);
    cache = b_.kv_cache(s.n_kv_heads, s.head_dim, s.v_head_dim);
  }
  const BufferId out = project(b_, "attn_out", "attn.output", y, "attn_output", c_.model_dim);
  b_.add_into(hidden_, row_norm(b_, "attn_post_norm", out, "post_attention_norm"));
}

void Gemma4Layers::feed_forward(std::uint32_t layer) {
  const BufferId x = row_norm(b_, "ffn_norm", hidden_, "ffn_norm");
  BufferId y = dense_ffn(b_, x, c_.ffn_dim_per_layer[layer], push::kGeluTanh);
  if (c_.n_experts > 0) {
    // The router's input is the normalized residual stream, scaled by a vector and by 1 / sqrt(model_dim).
    const BufferId router_scale = b_.layer_weight("moe.router_scale", "ffn_gate_inp.scale", {c_.model_dim});
    const BufferId normed = b_.rms_norm(b_.at_layer("router_norm"), hidden_, router_scale, eps(), c_.model_dim);
    const BufferId router =
        b_.scale(b_.at_layer("router_input"), normed, 1.0f / std::sqrt(static_cast<float>(c_.model_dim)));
    const BufferId moe = experts(b_, router, row_norm(b_, "expert_norm", hidden_, "pre_ffw_norm_2"), push::kGeluTanh);
    y = row_norm(b_, "dense_post_norm", y, "post_ffw_norm_1");
    b_.add_into(y, row_norm(b_, "expert_post_norm", moe, "post_ffw_norm_2"));
  }
  b_.add_into(hidden_, row_norm(b_, "ffn_post_norm", y, "post_ffw_norm"));
}

void Gemma4Layers::scale() {
  const BufferId factor = b_.optional_layer_weight("layer_scale", "layer_output_scale.weight", {1});
  if (factor != ir::kNoBuffer) b_.scale_into(hidden_, factor);
}

std::vector<RopeTable> Gemma4Layers::rope_tables(const ModelConfig& c, const Weights& weights,
                                                 std::uint32_t first_position) {
  return {{"rope", {scaled_rope_angles(c, weights, kDivisors)}, first_position},
          {"rope_sliding", {rope_angles(c.sliding_rope_dim, c.sliding_rope_theta)}, first_position}};
}

extern const Family kFamily_gemma4;
const Family kFamily_gemma4{"Gemma 4", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
