// Builds the graph of Qwen 3: the llama layer with a norm of each q and k head before RoPE, which rotates pairs (i, i +
// n_rot / 2). qwen3moe has experts instead of the feed-forward network. Its router takes the softmax over all experts,
// chooses the most likely, and renormalizes their weights.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"qwen3", "qwen3moe"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, self_attention(b, norm, attention_shape(c, layer), rope));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    b.add_into(hidden, c.n_experts > 0 ? experts(b, ffn_norm, ffn_norm, push::kSilu)
                                       : dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_qwen3;
const Family kFamily_qwen3{"Qwen 3", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
