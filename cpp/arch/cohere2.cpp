// Builds the graph of Command R7B and the other Cohere 2 models. Attention and the feed-forward network read the same
// LAYER_NORM, which has no bias: x = x + attention(n) + ffn(n). Three of four layers attend to a window and rotate
// pairs (2i, 2i + 1). Every fourth layer attends to the whole context and encodes no positions. The logits are
// multiplied by a scale.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"cohere2"};
constexpr std::uint32_t kGlobalInterval = 4;  // used if the file does not list the sliding layers

bool is_sliding(const ModelConfig& c, std::uint32_t layer) {
  return c.is_sliding.empty() ? (layer + 1) % kGlobalInterval != 0 : c.is_sliding[layer];
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.sliding_window == 0) b.refuse("key cohere2.attention.sliding_window is missing or 0");
  if (c.logit_scale == 0) b.refuse("key cohere2.logit_scale is 0, by which logits are multiplied");
  b.use_layer_norms();
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, false), no_rope{ir::kNoBuffer, ir::kNoBuffer, 0, false};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const bool sliding = is_sliding(c, layer);
    AttentionShape shape = attention_shape(c, layer);
    if (!sliding) shape.window = 0;
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    const BufferId mixed = attend(b, project_qkv(b, norm, shape), shape, sliding ? rope : no_rope);
    const BufferId attn = project(b, "attn_out", "attn.output", mixed, "attn_output", c.model_dim);
    const BufferId ffn = dense_ffn(b, norm, c.ffn_dim_per_layer[layer], push::kSilu);
    b.add_into(hidden, attn);
    b.add_into(hidden, ffn);
  }
  output_head(b, hidden, static_cast<float>(c.logit_scale));
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_cohere2;
const Family kFamily_cohere2{"Command R7B", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
