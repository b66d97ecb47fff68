// Builds the graph of Gemma 3. Embeddings are multiplied by sqrt(model_dim). There are norms before and after attention
// and feed-forward; the file's norm weights already include Gemma's +1. The activation is tanh-GELU. Every sixth layer
// attends to the whole context and has its own RoPE base and scaling. The other layers attend to a window. RoPE rotates
// pairs (i, i + n_rot / 2).
#include <cmath>

#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"gemma3"};
// Every sixth layer is global if the file does not list the sliding layers.
constexpr std::uint32_t kGlobalInterval = 6;
// The 27B model scales attention scores by 1 / sqrt(model_dim / n_heads) instead of 1 / sqrt(head_dim). No key says so,
// so its files are recognized by their number of layers.
constexpr std::uint32_t kLayersOf27B = 62;

bool is_sliding(const ModelConfig& c, std::uint32_t layer) {
  return c.is_sliding.empty() ? (layer + 1) % kGlobalInterval != 0 : c.is_sliding[layer];
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, std::sqrt(static_cast<float>(c.model_dim)));
  const Rope global = config_rope(b, true);
  const Rope local{b.constant("rope_sliding", {options.max_context, c.rope_dim}), b.positions(), c.rope_dim, true};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const bool sliding = is_sliding(c, layer);
    AttentionShape shape = attention_shape(c, layer);
    if (!sliding) shape.window = 0;
    if (c.attention_scale == 0 && c.n_layers == kLayersOf27B)
      shape.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.model_dim) / c.n_heads));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    const BufferId attn = self_attention(b, norm, shape, sliding ? local : global);
    b.add_into(hidden, row_norm(b, "attn_post_norm", attn, "post_attention_norm"));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    const BufferId ffn = dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kGeluTanh);
    b.add_into(hidden, row_norm(b, "ffn_post_norm", ffn, "post_ffw_norm"));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}},
          {"rope_sliding", {rope_angles(c.rope_dim, c.sliding_rope_theta)}}};
}

}  // namespace

extern const Family kFamily_gemma3;
const Family kFamily_gemma3{"Gemma 3", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
