// Builds the graph of gpt-oss. Every second layer attends to a window. Each head has a sink, a score that takes a share
// of attention and has no value. q, k, v, the output, the router and the experts have biases. The experts' activation
// is clamped. The file calls the norm before the experts post_attention_norm. RoPE rotates pairs (i, i + n_rot / 2),
// scaled by YaRN whose bounds are not rounded to whole pairs.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"gpt-oss"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    AttentionShape shape = attention_shape(c, layer);
    if (layer % 2 != 0) shape.window = 0;
    shape.sinks = b.layer_weight("attn.sinks", "attn_sinks.weight", {shape.n_heads});
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, self_attention(b, norm, shape, rope));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "post_attention_norm");
    b.add_into(hidden, experts(b, ffn_norm, ffn_norm, push::kSwigluOai));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights, {}, YarnBounds::kExact)}}};
}

}  // namespace

extern const Family kFamily_gpt_oss;
const Family kFamily_gpt_oss{"gpt-oss", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
