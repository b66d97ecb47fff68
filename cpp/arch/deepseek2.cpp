// Builds the graph of DeepSeek 2 and 3 (also GLM-4.7-Flash, Kimi K2, Moonlight) and of Mistral Small 4. Attention is
// latent: keys and values of all heads come from one compressed row c, and the cache holds c and one rotated part for
// all heads. A head's query is multiplied by the head's key matrix once, instead of each cached row, so that attention
// sees one kv head whose values are c; then each head's result is multiplied by the head's value matrix. RoPE rotates
// pairs (2i, 2i + 1) of the last elements of a query head. The router takes softmax or sigmoids, may choose with a bias
// per expert and by groups, and a shared expert is added. The first layers have no experts.
#include <cmath>

#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"deepseek2", "mistral4"};
// The norms of the compressed rows have this epsilon in the published code, whatever the other norms have.
constexpr float kInnerEps = 1e-6f;
// GLM-4.7-Flash's files do not say that its router takes sigmoids. They are recognized by the vocabulary.
constexpr std::uint32_t kVocabularyOfGlm = 154880;

struct Latent {
  std::uint32_t heads, nope, rotated, rank, values;  // nope: elements of a query head that are not rotated
  float scale;
};

Latent latent_of(const ModelConfig& c) {
  Latent s{c.n_heads, c.mla_k_dim - c.rope_dim, c.rope_dim, c.kv_lora_rank, c.mla_v_dim, 0};
  double factor = 1;
  if (c.rope_scaling_type == "yarn") factor = 1 + c.rope_yarn_log_multiplier * std::log(c.rope_scaling_factor);
  s.scale = static_cast<float>(factor * factor / std::sqrt(static_cast<double>(c.mla_k_dim)));
  return s;
}

BufferId latent_attention(Builder& b, BufferId x, const Latent& s, const Rope& rope, BufferId temperature) {
  const auto& c = b.config();
  const std::uint32_t k_dim = s.nope + s.rotated;
  const std::uint64_t q_dim = std::uint64_t{s.heads} * k_dim;
  BufferId q;
  if (b.layer_has("attn_q_a.weight")) {
    const BufferId row = project(b, "q_row", "attn.q_a", x, "attn_q_a", c.q_lora_rank);
    q = project(b, "q", "attn.q", row_norm(b, "q_row_norm", row, "attn_q_a_norm", kInnerEps), "attn_q_b", q_dim);
  } else {
    q = project(b, "q", "attn.q", x, "attn_q", q_dim);
  }
  if (temperature != ir::kNoBuffer)
    q = b.rope(b.at_layer("q_scaled"), q, b.positions(), temperature, k_dim, k_dim, false);
  const BufferId both = project(b, "kv_row", "attn.kv_a", x, "attn_kv_a_mqa", s.rank + s.rotated);
  const BufferId row = row_norm(b, "kv_row_norm", b.slice(b.at_layer("kv_c"), both, s.rank + s.rotated, 0, s.rank),
                                "attn_kv_a_norm", kInnerEps);
  const BufferId k_part =
      rotate(b, "k_rot", b.slice(b.at_layer("k_part"), both, s.rank + s.rotated, s.rank, s.rotated), rope, s.rotated);
  const BufferId q_part =
      rotate(b, "q_rot", b.slice(b.at_layer("q_part"), q, k_dim, s.nope, s.rotated), rope, s.rotated);
  const BufferId absorbed =
      b.linear_heads(b.at_layer("q_absorbed"), b.slice(b.at_layer("q_nope"), q, k_dim, 0, s.nope),
                     b.layer_weight("attn.k_b_weight", "attn_k_b.weight", {s.heads, s.rank, s.nope}));
  const AttentionShape shape{
      s.heads, 1, s.rank + s.rotated, s.rank, s.scale, c.sliding_window, static_cast<float>(c.attention_softcap)};
  const BufferId seen = attend(b,
                               {b.concat(b.at_layer("q_latent"), absorbed, q_part, s.heads),
                                b.concat(b.at_layer("k_latent"), row, k_part, 1), row},
                               shape);
  const BufferId y = b.linear_heads(b.at_layer("attn_values"), seen,
                                    b.layer_weight("attn.v_b_weight", "attn_v_b.weight", {s.heads, s.values, s.rank}));
  return project(b, "attn_out", "attn.output", y, "attn_output", c.model_dim);
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (b.has_tensor("blk.0.attn_kv_b.weight"))
    b.refuse(
        "tensor \"blk.0.attn_kv_b.weight\" is of an older form of these files, in which attn_k_b and attn_v_b are one; "
        "convert the model anew");
  const bool is_sound = c.kv_lora_rank > 0 && c.mla_v_dim > 0 && c.mla_k_dim > c.rope_dim && c.rope_dim > 0 &&
                        c.head_dim == c.kv_lora_rank + c.rope_dim && c.v_head_dim == c.kv_lora_rank &&
                        c.n_kv_heads == 1;
  if (!is_sound) {
    b.refuse(
        fmt::format("latent attention with kv_lora_rank {}, heads of {} ({} rotated) and {}, cached heads of {} and "
                    "{}, {} kv heads",
                    c.kv_lora_rank, c.mla_k_dim, c.rope_dim, c.mla_v_dim, c.head_dim, c.v_head_dim, c.n_kv_heads));
    return b.finish();
  }
  if (c.attention_scale > 0 || (c.rope_attn_factor > 0 && c.rope_attn_factor != 1))
    b.refuse(
        fmt::format("attention.scale is {} and rope.scaling.attn_factor is {}; the factor of latent attention's scores "
                    "comes from its heads and from YaRN alone",
                    c.attention_scale, c.rope_attn_factor));
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, false);
  const Latent shape = latent_of(c);
  const BufferId temperature =
      queries_have_temperature(b) ? b.constant("rope_temperature", {options.max_context, c.mla_k_dim}) : ir::kNoBuffer;
  const bool is_glm = c.architecture == "deepseek2" && c.vocab_size == kVocabularyOfGlm;
  const RouterDefaults router{.gating = is_glm ? push::kSigmoid : push::kSoftmax,
                              .renormalize = c.architecture == "mistral4"};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, latent_attention(b, norm, shape, rope, temperature));
    add_feed_forward(b, row_norm(b, "ffn_norm", hidden, "ffn_norm"), hidden, layer, router);
  }
  output_head(b, hidden);
  return b.finish(mtp_blocks(c));
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  RopeAngles angles = scaled_rope_angles(c, weights);
  angles.magnitude = 1;  // YaRN's factor is in the scale of the scores
  RopeAngles temperature;
  temperature.inverse_frequencies.assign(c.mla_k_dim / 2, 0.0);
  temperature.temperature_scale = c.temperature_scale;
  temperature.temperature_length = c.rope_original_context;
  return {{"rope", {angles}}, {"rope_temperature", {temperature}}};
}

}  // namespace

extern const Family kFamily_deepseek2;
const Family kFamily_deepseek2{"DeepSeek 2 and 3, GLM-4.7-Flash, Mistral Small 4", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
