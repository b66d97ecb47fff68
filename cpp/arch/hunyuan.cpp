// Builds the graph of the Hunyuan models: the llama layer with a norm of each q and k head behind RoPE, which rotates
// pairs (i, i + n_rot / 2). rope.freq_base already includes the stretch for long texts. hunyuan-moe has experts and a
// shared expert instead of the feed-forward network. Its router takes the softmax over all experts and renormalizes the
// weights of the most likely.
#include "arch/blocks.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"hunyuan-dense", "hunyuan-moe"};

BufferId attention(Builder& b, BufferId x, const AttentionShape& shape, const Rope& rope) {
  Qkv qkv = project_qkv(b, x, shape);
  qkv.q = head_norm(b, "q_norm", rotate(b, "q_rot", qkv.q, rope, shape.head_dim), "attn_q_norm", shape.head_dim);
  qkv.k = head_norm(b, "k_norm", rotate(b, "k_rot", qkv.k, rope, shape.head_dim), "attn_k_norm", shape.head_dim);
  return project(b, "attn_out", "attn.output", attend(b, qkv, shape), "attn_output", b.config().model_dim);
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, attention(b, norm, attention_shape(c, layer), rope));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    add_feed_forward(b, ffn_norm, hidden, layer);
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_hunyuan;
const Family kFamily_hunyuan{"Hunyuan", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
