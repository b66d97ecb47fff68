// Builds the graph of GLM-4 (0414): the llama layer with biases on q, k and v, and a norm behind attention and behind
// the feed-forward network as well as before. ffn_up holds the rows of gate and of up. RoPE rotates pairs (2i, 2i + 1)
// of the first n_rot elements of a head. Blocks for multi-token prediction follow the last layer in some files and are
// not run.
#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"glm4"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, false);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    const BufferId attn = self_attention(b, norm, attention_shape(c, layer), rope);
    b.add_into(hidden, row_norm(b, "attn_post_norm", attn, "post_attention_norm"));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    const BufferId ffn = dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu);
    b.add_into(hidden, row_norm(b, "ffn_post_norm", ffn, "post_ffw_norm"));
  }
  output_head(b, hidden);
  std::vector<std::string> mtp_blocks;
  for (std::uint32_t i = 0; i < c.n_mtp_layers; ++i) mtp_blocks.push_back(fmt::format("blk.{}.", c.n_layers + i));
  return b.finish(mtp_blocks);
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_glm4;
const Family kFamily_glm4{"GLM-4", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
