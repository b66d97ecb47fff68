#include "vulkan/family.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace zinc_rt::vulkan {
namespace {

constexpr std::string_view kDivisors = "rope_freqs.weight", kShort = "rope_factors_short.weight",
                           kLong = "rope_factors_long.weight";

// Each family has such a function. It changes the shape that all families share into the family's own.
using Refine = Status (*)(const ModelConfig&, const Weights&, ModelShape&);

Status llama(const ModelConfig& c, const Weights& weights, ModelShape& shape) {
  shape.embedding_scale = static_cast<float>(c.embedding_scale);
  ZRT_TRY(shape.rope_tables[0][0], scaled_angles(c, weights, kDivisors));
  shape.used_tensors = {kDivisors};
  return {};
}

Status qwen(const ModelConfig&, const Weights&, ModelShape& shape) {
  shape.is_neox = true;
  return {};
}

// SmolLM3: every fourth layer encodes no positions.
Status smollm3(const ModelConfig&, const Weights&, ModelShape& shape) {
  for (std::size_t i = 3; i < shape.layers.size(); i += 4) shape.layers[i].rope_table = -1;
  return {};
}

Status granite(const ModelConfig& c, const Weights&, ModelShape& shape) {
  if (c.logit_scale == 0)
    return fail(StatusCode::kCorrupt, "[vulkan] key granite.logit_scale is 0, by which logits are divided");
  shape.embedding_scale = static_cast<float>(c.embedding_scale);
  shape.residual_scale = static_cast<float>(c.residual_scale);
  shape.logit_scale = static_cast<float>(1 / c.logit_scale);
  return {};
}

// Phi-3 uses LongRoPE: one list of divisors for texts up to the original context, and another list for longer texts.
Status phi3(const ModelConfig& c, const Weights& weights, ModelShape& shape) {
  shape.is_neox = true;
  if (weights.find(kLong) == nullptr) return {};
  ZRT_TRY(RopeAngles near, scaled_angles(c, weights, kShort));
  ZRT_TRY(RopeAngles far, scaled_angles(c, weights, kLong));
  if (c.rope_attn_factor == 0) {
    const double longer = static_cast<double>(c.context_length) / c.rope_original_context;
    near.magnitude = far.magnitude =
        longer > 1 ? std::sqrt(1 + std::log(longer) / std::log(static_cast<double>(c.rope_original_context))) : 1;
  }
  shape.rope_tables = {{near, far}};
  shape.variant_limit = c.rope_original_context;
  shape.used_tensors = {kShort, kLong};
  return {};
}

// Gemma 3: if the file does not tell which layers attend to the whole context, every sixth layer does. All other layers
// have another RoPE base. The 27B model, recognized by its 62 layers, scales scores by its width per head.
Status gemma3(const ModelConfig& c, const Weights&, ModelShape& shape) {
  shape.is_neox = true;
  shape.has_post_norms = true;
  shape.activation = zinc_rt::push::kGeluTanh;
  shape.embedding_scale = std::sqrt(static_cast<float>(c.model_dim));
  if (c.attention_scale == 0 && c.n_layers == 62)
    shape.attention_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.model_dim) / c.n_heads));
  shape.rope_tables.push_back({plain_angles(c.rope_dim, c.sliding_rope_theta)});
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const bool is_sliding = c.is_sliding.empty() ? (i + 1) % 6 != 0 : c.is_sliding[i];
    shape.layers[i].rope_table = is_sliding ? 1 : 0;
    if (!is_sliding) shape.layers[i].window = 0;
  }
  return {};
}

// Gemma 4: sliding and global layers differ in heads and RoPE. The last layers have no K and V of their own. Each reads
// the K and V of the last earlier layer of its kind. Experts run beside the dense feed-forward.
Status gemma4(const ModelConfig& c, const Weights& weights, ModelShape& shape) {
  if (c.is_sliding.empty())
    return fail(StatusCode::kCorrupt, "[vulkan] key gemma4.attention.sliding_window_pattern is missing");
  shape.is_neox = shape.has_post_norms = shape.has_value_norm = shape.has_layer_scale = true;
  shape.activation = zinc_rt::push::kGeluTanh;
  shape.embedding_scale = std::sqrt(static_cast<float>(c.model_dim));
  shape.attention_scale = 1;
  shape.layer_embedding_dim = c.per_layer_embedding_dim;
  ZRT_TRY(shape.rope_tables[0][0], scaled_angles(c, weights, kDivisors));
  shape.used_tensors = {kDivisors};
  shape.rope_tables.push_back({plain_angles(c.sliding_rope_dim, c.sliding_rope_theta)});
  std::uint32_t last_of_kind[2] = {};
  for (std::uint32_t i = 0; i < c.n_layers; ++i) {
    LayerShape& layer = shape.layers[i];
    const bool is_sliding = c.is_sliding[i];
    if (is_sliding) {
      layer.head_dim = c.sliding_head_dim;
      layer.v_head_dim = c.sliding_v_head_dim;
    } else {
      layer.window = 0;
    }
    layer.rope_table = is_sliding ? 1 : 0;
    if (i + c.n_shared_kv_layers < c.n_layers) last_of_kind[is_sliding] = i;
    layer.cache_layer = last_of_kind[is_sliding];
    if (c.n_experts > 0) layer.feed_forward = FeedForward::kDenseAndExperts;
  }
  return {};
}

// Qwen hybrids: most layers are recurrent, and the others have gated attention.
Status qwen_hybrid(const ModelConfig& c, const Weights&, ModelShape& shape) {
  if (c.ssm_k_heads == 0 || c.ssm_v_heads == 0 || c.ssm_k_dim == 0 || c.ssm_conv_width < 2 ||
      c.ssm_v_heads % c.ssm_k_heads != 0 || c.ssm_inner_dim % c.ssm_v_heads != 0)
    return fail(StatusCode::kCorrupt,
                "[vulkan] ssm keys: {} key heads of {}, {} value heads, inner size {}, convolution over {}",
                c.ssm_k_heads, c.ssm_k_dim, c.ssm_v_heads, c.ssm_inner_dim, c.ssm_conv_width);
  shape.is_neox = shape.has_query_gate = true;
  shape.ffn_norm = "post_attention_norm";
  shape.delta = {c.ssm_k_heads, c.ssm_v_heads, c.ssm_k_dim, c.ssm_inner_dim / c.ssm_v_heads, c.ssm_conv_width};
  for (std::uint32_t i = 0; i < c.n_layers; ++i)
    if (c.is_recurrent[i]) shape.layers[i].mixer = Mixer::kDeltaNet;
  return {};
}

struct Row {
  std::string_view architecture, family;
  Refine refine;
  bool may_have_experts = false;
};
constexpr Row kRows[] = {{"llama", "Llama, Mistral, SmolLM2", llama},
                         {"qwen2", "Qwen 2, Qwen 2.5", qwen},
                         {"qwen3", "Qwen 3", qwen},
                         {"qwen3moe", "Qwen 3", qwen, true},
                         {"qwen3next", "Qwen3-Next, Qwen 3.5, Qwen 3.6", qwen_hybrid, true},
                         {"qwen35", "Qwen3-Next, Qwen 3.5, Qwen 3.6", qwen_hybrid, true},
                         {"qwen35moe", "Qwen3-Next, Qwen 3.5, Qwen 3.6", qwen_hybrid, true},
                         {"smollm3", "SmolLM3", smollm3},
                         {"granite", "Granite 3", granite},
                         {"phi3", "Phi-3, Phi-3.5, Phi-4-mini", phi3},
                         {"gemma3", "Gemma 3", gemma3},
                         {"gemma4", "Gemma 4", gemma4, true}};

ModelShape common_shape(const ModelConfig& c) {
  ModelShape shape;
  shape.attention_scale =
      static_cast<float>(c.attention_scale > 0 ? c.attention_scale : 1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  for (std::uint32_t i = 0; i < c.n_layers; ++i)
    shape.layers.push_back({.feed_forward = c.n_experts > 0 ? FeedForward::kExperts : FeedForward::kDense,
                            .n_kv_heads = c.n_kv_heads_per_layer[i],
                            .head_dim = c.head_dim,
                            .v_head_dim = c.v_head_dim,
                            .ffn_dim = c.ffn_dim_per_layer[i],
                            .window = c.sliding_window,
                            .cache_layer = i});
  shape.experts = {c.n_experts, c.n_experts_used, c.expert_ffn_dim,
                   c.shared_expert_ffn_dim > 0 ? c.shared_expert_ffn_dim : c.expert_ffn_dim,
                   static_cast<float>(c.expert_weights_scale)};
  return shape;
}

}  // namespace

Result<ModelShape> describe(const ModelConfig& c, const Weights& weights) {
  const auto row = std::ranges::find(kRows, c.architecture, &Row::architecture);
  if (row == std::end(kRows)) {
    std::vector<std::string_view> names;
    for (const Row& known : kRows) names.push_back(known.architecture);
    return fail(StatusCode::kUnavailable,
                "[vulkan] architecture \"{}\" is not supported by this backend; supported: {}", c.architecture,
                fmt::join(names, ", "));
  }
  if (c.n_experts > 0 && !row->may_have_experts)
    return fail(StatusCode::kUnavailable, "[vulkan] {}: {} experts are not supported in this family", c.architecture,
                c.n_experts);
  // This backend's router takes the softmax over all experts, renormalizes, and knows no groups.
  if (c.n_experts > 0 &&
      (c.expert_gating == ExpertGating::kSigmoid || c.n_expert_groups > 1 || !c.expert_weights_norm.value_or(true)))
    return fail(
        StatusCode::kUnavailable,
        "[vulkan] {}: a router with expert_gating_func {}, {} groups of experts and expert_weights_norm {} is not "
        "supported by this backend",
        c.architecture, static_cast<unsigned>(c.expert_gating), c.n_expert_groups,
        c.expert_weights_norm.value_or(true));
  if (c.rope_scaling_type == "longrope" && (c.architecture != "phi3" || weights.find(kLong) == nullptr))
    return fail(StatusCode::kUnavailable,
                "[vulkan] {}: rope scaling \"longrope\" is not supported without phi3's factors", c.architecture);
  ModelShape shape = common_shape(c);
  shape.family = row->family;
  ZRT_TRY(auto angles, scaled_angles(c, weights));
  shape.rope_tables = {{std::move(angles)}};
  ZRT_CHECK_OK(row->refine(c, weights, shape));
  return shape;
}

std::uint32_t rope_variant(const ModelShape& shape, std::uint64_t n_tokens) {
  return shape.variant_limit > 0 && n_tokens > shape.variant_limit ? 1 : 0;
}

std::vector<std::uint32_t> rope_limits(const ModelShape& shape, std::uint32_t max_context) {
  if (rope_variant(shape, max_context) == 0) return {};
  return {static_cast<std::uint32_t>(shape.variant_limit)};
}

}  // namespace zinc_rt::vulkan
