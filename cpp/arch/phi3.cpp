// Builds the graph of Phi-3, Phi-3.5 and Phi-4-mini: the llama layer with fused matrices (attn_qkv holds q, k and v;
// ffn_up holds gate and up). RoPE rotates pairs (i, i + n_rot / 2) of the first n_rot elements of a head. LongRoPE has
// two sets of frequency divisors: one for texts up to the original context, one for longer texts.
#include <cmath>

#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"phi3"};
constexpr std::string_view kShort = "rope_factors_short.weight", kLong = "rope_factors_long.weight";

bool has_long_rope(const Weights& weights) {
  return weights.find(kLong) != nullptr;
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  Rope rope{};
  if (has_long_rope(weights)) {
    b.optional_f32("rope_factors_short", std::string(kShort), {c.rope_dim / 2});
    b.optional_f32("rope_factors_long", std::string(kLong), {c.rope_dim / 2});
    rope = {b.constant("rope", {2 * options.max_context, c.rope_dim}), b.rope_positions(), c.rope_dim, true};
  } else {
    rope = config_rope(b, true);
  }
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, self_attention(b, norm, attention_shape(c, layer), rope));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    b.add_into(hidden, dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  if (!has_long_rope(weights)) return {{"rope", {scaled_rope_angles(c, weights)}}};
  RopeAngles near = scaled_rope_angles(c, weights, kShort), far = scaled_rope_angles(c, weights, kLong);
  if (c.rope_attn_factor == 0) {
    const double original = c.rope_original_context, longer = c.context_length / original;
    near.magnitude = far.magnitude = longer > 1 ? std::sqrt(1 + std::log(longer) / std::log(original)) : 1;
  }
  return {{"rope", {near, far}}};
}

std::uint32_t rope_variant(const ModelConfig& c, const Weights& weights, std::uint64_t n_tokens) {
  return has_long_rope(weights) && n_tokens > c.rope_original_context ? 1 : 0;
}

}  // namespace

extern const Family kFamily_phi3;
const Family kFamily_phi3{"Phi-3, Phi-3.5, Phi-4-mini", kArchitectures, build, rope_tables, rope_variant};

}  // namespace zinc_rt::arch
