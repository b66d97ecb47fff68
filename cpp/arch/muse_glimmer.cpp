// Builds the graph of Muse Glimmer. The embeddings are normalized without a weight. There is a norm before and behind
// attention and the feed-forward network; those behind have an epsilon of their own. Each q and k head is normalized.
// attn_gate computes a gate whose sigmoid multiplies the output of attention. The layers with a window rotate pairs
// (2i, 2i + 1), the others encode no positions. The logits are multiplied by a scale, then capped.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"muse-glimmer"};
constexpr float kPostNormEps = 1e-8f;  // a constant because no metadata key states it

BufferId gated_attention(Builder& b, BufferId x, const AttentionShape& s, const Rope& rope) {
  Qkv qkv = project_qkv(b, x, s);
  const BufferId gate = project(b, "attn_gate", "attn.gate", x, "attn_gate", std::uint64_t{s.n_heads} * s.v_head_dim);
  qkv.q = head_norm(b, "q_norm", qkv.q, "attn_q_norm", s.head_dim);
  qkv.k = head_norm(b, "k_norm", qkv.k, "attn_k_norm", s.head_dim);
  const BufferId y = b.sigmoid_mul(b.at_layer("attn_gated"), attend(b, qkv, s, rope), gate);
  return project(b, "attn_out", "attn.output", y, "attn_output", b.config().model_dim);
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.is_sliding.empty()) b.refuse("key muse-glimmer.attention.sliding_window_pattern is missing");
  if (c.sliding_window == 0) b.refuse("key muse-glimmer.attention.sliding_window is missing or 0");
  if (c.logit_scale == 0) b.refuse("key muse-glimmer.logit_scale is 0, by which logits are multiplied");
  const BufferId table = b.weight("embed_table", "token_embd.weight", {c.vocab_size, c.model_dim});
  const BufferId hidden = b.rms_norm("hidden", b.embed("embedded", b.token_ids(), table, 1.0f), ir::kNoBuffer,
                                     static_cast<float>(c.norm_eps), c.model_dim);
  const Rope rope = config_rope(b, false), no_rope{ir::kNoBuffer, ir::kNoBuffer, 0, false};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const bool sliding = !c.is_sliding.empty() && c.is_sliding[layer];
    AttentionShape shape = attention_shape(c, layer);
    if (!sliding) shape.window = 0;
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    const BufferId attn = gated_attention(b, norm, shape, sliding ? rope : no_rope);
    b.add_into(hidden, row_norm(b, "attn_post_norm", attn, "post_attention_norm", kPostNormEps));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    const BufferId ffn = dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu);
    b.add_into(hidden, row_norm(b, "ffn_post_norm", ffn, "post_ffw_norm", kPostNormEps));
  }
  output_head(b, hidden, static_cast<float>(c.logit_scale));
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_muse_glimmer;
const Family kFamily_muse_glimmer{"Muse Glimmer", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
