// Builds the graph of GLM 4.5, 4.6 and 4.7 with experts: the llama layer with biases of q, k and v and, in some models,
// a norm of each q and k head. The router takes sigmoids and chooses with a bias per expert; a shared expert is added.
// The first layers have no experts. The file calls the norm before them post_attention_norm. RoPE rotates pairs (i, i +
// n_rot / 2) of the first n_rot elements of a head. Blocks for multi-token prediction follow the last layer and are not
// run.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"glm4moe"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, self_attention(b, norm, attention_shape(c, layer), rope));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "post_attention_norm");
    add_feed_forward(b, ffn_norm, hidden, layer, {.gating = push::kSigmoid, .renormalize = false});
  }
  output_head(b, hidden);
  return b.finish(mtp_blocks(c));
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_glm4moe;
const Family kFamily_glm4moe{"GLM 4.5 to 4.7 with experts", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
