#include "vulkan/family.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"

namespace zinc_rt::vulkan {
namespace {

constexpr std::string_view kDivisors = "rope_freqs.weight", kShort = "rope_factors_short.weight",
                           kLong = "rope_factors_long.weight";

RopeAngles plain_angles(std::uint32_t n_rot, double theta) {
  RopeAngles angles;
  for (std::uint32_t i = 0; i < n_rot / 2; ++i) angles.frequencies.push_back(std::pow(theta, -2.0 * i / n_rot));
  return angles;
}

// YaRN (Peng, Quesnelle, Fan, Shippole, 2023): pairs that turn often within the original context keep their frequency,
// those that turn seldom are stretched, with a linear mix between them.
void stretch_by_yarn(const ModelConfig& c, RopeAngles& angles) {
  const auto pair_with_turns = [&](double turns) {
    return c.rope_dim * std::log(c.rope_original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(c.rope_theta));
  };
  const double first = std::max(0.0, std::floor(pair_with_turns(c.rope_yarn_beta_fast)));
  const double last = std::min(c.rope_dim - 1.0, std::ceil(pair_with_turns(c.rope_yarn_beta_slow)));
  for (std::size_t i = 0; i < angles.frequencies.size(); ++i) {
    const double part = std::clamp((static_cast<double>(i) - first) / std::max(0.001, last - first), 0.0, 1.0);
    const double plain = angles.frequencies[i];
    angles.frequencies[i] = plain * (1 - part) + plain / c.rope_scaling_factor * part;
  }
  angles.magnitude *= 1 + 0.1 * std::log(c.rope_scaling_factor);
}

// The config's angles, each divided by its divisor where the file has the tensor.
Result<RopeAngles> scaled_angles(const ModelConfig& c, const Weights& weights, std::string_view divisors = {}) {
  RopeAngles angles = plain_angles(c.rope_dim, c.rope_theta);
  if (c.rope_attn_factor > 0) angles.magnitude = c.rope_attn_factor;
  if (c.rope_scaling_type == "linear")
    for (double& frequency : angles.frequencies) frequency /= c.rope_scaling_factor;
  if (c.rope_scaling_type == "yarn") stretch_by_yarn(c, angles);
  if (divisors.empty() || weights.find(divisors) == nullptr) return angles;
  ZRT_TRY(const Tensor* tensor, weights.require(divisors, {c.rope_dim / 2}));
  if (tensor->dtype != DType::kF32)
    return fail(StatusCode::kUnavailable, "[vulkan] tensor {} is of type {}, f32 is supported", divisors,
                to_string(tensor->dtype));
  for (std::size_t i = 0; i < angles.frequencies.size(); ++i) {
    float divisor;
    std::memcpy(&divisor, tensor->data.data() + sizeof(float) * i, sizeof(float));
    angles.frequencies[i] /= divisor;
  }
  return angles;
}

// What a family adds to the shape that all share.
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

// Every fourth layer encodes no positions.
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

// LongRoPE has divisors for texts up to the original context and for longer ones.
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

// Every sixth layer sees the whole context, where the file does not say which do; the others have RoPE of their own
// base. The 27B model scales scores by its width a head, and its files are told by their 62 layers.
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

struct Row {
  std::string_view architecture, family;
  Refine refine;
};
constexpr Row kRows[] = {{"llama", "Llama, Mistral, SmolLM2", llama},
                         {"qwen2", "Qwen 2, Qwen 2.5", qwen},
                         {"qwen3", "Qwen 3", qwen},
                         {"smollm3", "SmolLM3", smollm3},
                         {"granite", "Granite 3", granite},
                         {"phi3", "Phi-3, Phi-3.5, Phi-4-mini", phi3},
                         {"gemma3", "Gemma 3", gemma3}};

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
  if (c.n_experts > 0)
    return fail(StatusCode::kUnavailable, "[vulkan] {}: {} experts are not supported by this backend", c.architecture,
                c.n_experts);
  if (c.rope_scaling_type == "longrope" && c.architecture != "phi3")
    return fail(StatusCode::kUnavailable, "[vulkan] {}: rope scaling \"longrope\" is not supported", c.architecture);
  ModelShape shape;
  shape.family = row->family;
  shape.attention_scale =
      static_cast<float>(c.attention_scale > 0 ? c.attention_scale : 1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  for (std::uint32_t i = 0; i < c.n_layers; ++i)
    shape.layers.push_back({c.n_kv_heads_per_layer[i], c.ffn_dim_per_layer[i], c.sliding_window, 0});
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

std::vector<float> rope_rows(const std::vector<RopeAngles>& variants, std::uint32_t n_positions) {
  std::vector<float> rows;
  for (const RopeAngles& angles : variants)
    for (std::uint32_t p = 0; p < n_positions; ++p)
      for (const double frequency : angles.frequencies) {
        const double angle = static_cast<double>(p) * frequency;
        rows.push_back(static_cast<float>(std::cos(angle) * angles.magnitude));
        rows.push_back(static_cast<float>(std::sin(angle) * angles.magnitude));
      }
  return rows;
}

}  // namespace zinc_rt::vulkan
