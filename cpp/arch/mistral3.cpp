// Builds the graph of Ministral 3 and of the text models of Mistral Small 3.x and Devstral Small 2: the llama layer
// with YaRN. The queries are multiplied by f(position) = 1 + temperature_scale * ln(1 + floor(position / original
// context)). They read a RoPE table of their own, whose values include f. RoPE rotates pairs (2i, 2i + 1).
#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"mistral3"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.temperature_scale > 0 && c.rope_dim != c.head_dim)
    b.refuse(fmt::format("key mistral3.attention.temperature_scale is {}, and RoPE rotates {} of a head's {} elements",
                         c.temperature_scale, c.rope_dim, c.head_dim));
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope k_rope = config_rope(b, false);
  Rope q_rope = k_rope;
  if (queries_have_temperature(b)) q_rope.table = b.constant("rope_q", {options.max_context, c.rope_dim});
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const AttentionShape shape = attention_shape(c, layer);
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    Qkv qkv = project_qkv(b, norm, shape);
    qkv.q = rotate(b, "q_rot", qkv.q, q_rope, shape.head_dim);
    qkv.k = rotate(b, "k_rot", qkv.k, k_rope, shape.head_dim);
    b.add_into(hidden, project(b, "attn_out", "attn.output", attend(b, qkv, shape), "attn_output", c.model_dim));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    b.add_into(hidden, dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  const RopeAngles angles = scaled_rope_angles(c, weights);
  RopeAngles of_q = angles;
  of_q.temperature_scale = c.temperature_scale;
  of_q.temperature_length = c.rope_original_context;
  return {{"rope", {angles}}, {"rope_q", {of_q}}};
}

}  // namespace

extern const Family kFamily_mistral3;
const Family kFamily_mistral3{"Ministral 3, Mistral Small 3", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
