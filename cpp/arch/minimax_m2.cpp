// Builds the graph of MiniMax M2: a norm of the whole rows of q and of k, then RoPE on the first n_rot elements of each
// head, pairs (i, i + n_rot / 2). The router takes sigmoids, chooses with a bias per expert, and renormalizes the
// weights.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"minimax-m2"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const AttentionShape shape = attention_shape(c, layer);
    Qkv qkv = project_qkv(b, row_norm(b, "attn_norm", hidden, "attn_norm"), shape);
    norm_rows(b, qkv);
    b.add_into(hidden, project(b, "attn_out", "attn.output", attend(b, qkv, shape, rope), "attn_output", c.model_dim));
    add_feed_forward(b, row_norm(b, "ffn_norm", hidden, "ffn_norm"), hidden, layer, {.gating = push::kSigmoid});
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_minimax_m2;
const Family kFamily_minimax_m2{"MiniMax M2", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
