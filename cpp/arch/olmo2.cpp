// Builds the graph of OLMo 2 and OLMo 3. A layer computes x += norm(attention(x)), then x += norm(ffn(x)), with no norm
// before either. q and k are normalized over the whole row, before it is cut into heads. RoPE rotates pairs (i, i +
// n_rot / 2). In OLMo 3 some layers attend to a window; their RoPE has no context scaling.
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"olmo2"};

bool is_sliding(const ModelConfig& c, std::uint32_t layer) {
  return c.sliding_window > 0 && !c.is_sliding.empty() && c.is_sliding[layer];
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.sliding_window > 0 && c.is_sliding.empty())
    b.refuse("key olmo2.attention.sliding_window_pattern is missing, and key olmo2.attention.sliding_window is there");
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope global = config_rope(b, true);
  const Rope local{b.constant("rope_sliding", {options.max_context, c.rope_dim}), b.positions(), c.rope_dim, true};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const bool sliding = is_sliding(c, layer);
    AttentionShape shape = attention_shape(c, layer);
    if (!sliding) shape.window = 0;
    Qkv qkv = project_qkv(b, hidden, shape);
    norm_rows(b, qkv);
    const BufferId attn = project(b, "attn_out", "attn.output", attend(b, qkv, shape, sliding ? local : global),
                                  "attn_output", c.model_dim);
    b.add_into(hidden, row_norm(b, "attn_post_norm", attn, "post_attention_norm"));
    const BufferId ffn = dense_ffn(b, hidden, c.ffn_dim_per_layer[layer], push::kSilu);
    b.add_into(hidden, row_norm(b, "ffn_post_norm", ffn, "post_ffw_norm"));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}, {"rope_sliding", {rope_angles(c.rope_dim, c.rope_theta)}}};
}

}  // namespace

extern const Family kFamily_olmo2;
const Family kFamily_olmo2{"OLMo 2, OLMo 3", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
