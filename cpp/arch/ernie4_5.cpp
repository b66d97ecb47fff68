// Builds the graph of ERNIE 4.5, whose layer is the llama layer. RoPE rotates pairs (2i, 2i + 1). Most layers of
// ernie4_5-moe have experts and a shared expert instead of the feed-forward network. Their router takes the softmax
// over all experts, chooses with a bias per expert, and renormalizes the weights.
#include "arch/blocks.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"ernie4_5", "ernie4_5-moe"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, false);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, self_attention(b, norm, attention_shape(c, layer), rope));
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

extern const Family kFamily_ernie4_5;
const Family kFamily_ernie4_5{"ERNIE 4.5", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
