// Builds the graph of EXAONE 4. A layer computes x += norm(attention(x)), then x += norm(ffn(x)), with no norm before
// either. Each q and k head is normalized before RoPE, which rotates pairs (i, i + n_rot / 2) and divides frequencies
// by the tensor rope_freqs.weight. In models with a window (32B), the layers that attend to the whole context encode no
// positions.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"exaone4"};
constexpr std::string_view kDivisors = "rope_freqs.weight";

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const bool has_window = c.sliding_window > 0;
  if (has_window && c.is_sliding.empty())
    b.refuse(
        "key exaone4.attention.sliding_window_pattern is missing, and key exaone4.attention.sliding_window is there");
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true), no_rope{ir::kNoBuffer, ir::kNoBuffer, 0, false};
  b.optional_f32("rope_freqs", std::string(kDivisors), {c.rope_dim / 2});
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const bool sliding = has_window && !c.is_sliding.empty() && c.is_sliding[layer];
    AttentionShape shape = attention_shape(c, layer);
    if (!sliding) shape.window = 0;
    const BufferId attn = self_attention(b, hidden, shape, sliding || !has_window ? rope : no_rope);
    b.add_into(hidden, row_norm(b, "attn_post_norm", attn, "post_attention_norm"));
    const BufferId ffn = dense_ffn(b, hidden, c.ffn_dim_per_layer[layer], push::kSilu);
    b.add_into(hidden, row_norm(b, "ffn_post_norm", ffn, "post_ffw_norm"));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights, kDivisors)}}};
}

}  // namespace

extern const Family kFamily_exaone4;
const Family kFamily_exaone4{"EXAONE 4", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
