// Builds the graph of Granite 3: the llama layer with four scales. They multiply the embeddings, the outputs of
// attention and feed-forward, and the attention scores, and divide the logits. RoPE rotates pairs (2i, 2i + 1).
#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"granite"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.logit_scale == 0) b.refuse("key granite.logit_scale is 0, by which logits are divided");
  const auto residual = static_cast<float>(c.residual_scale);
  const BufferId hidden = embed_tokens(b, static_cast<float>(c.embedding_scale));
  const Rope rope = config_rope(b, false);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    const BufferId attn = self_attention(b, norm, attention_shape(c, layer), rope);
    b.add_into(hidden, b.scale(b.at_layer("attn_scaled"), attn, residual));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    const BufferId ffn = dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu);
    b.add_into(hidden, b.scale(b.at_layer("ffn_scaled"), ffn, residual));
  }
  output_head(b, hidden, static_cast<float>(1 / c.logit_scale));
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_granite;
const Family kFamily_granite{"Granite 3", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
