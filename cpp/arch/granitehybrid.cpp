// Builds the graph of Granite 4's hybrids: Granite's layer with its four scales, in which most layers have Mamba 2
// instead of attention. A layer is recurrent if the file lists 0 KV heads for it. Most models encode no positions; the
// others rotate pairs (2i, 2i + 1). The feed-forward network is dense, or a mixture of experts and a shared expert.
#include "arch/mamba2.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"granitehybrid"};

// Returns the output of the layer's feed-forward network, [tokens, model_dim].
BufferId feed_forward(Builder& b, BufferId x, std::uint32_t layer) {
  const auto& c = b.config();
  if (c.n_experts == 0) return dense_ffn(b, x, c.ffn_dim_per_layer[layer], push::kSilu);
  const BufferId sum = experts(b, x, x, push::kSilu);
  add_shared_expert(b, x, sum, push::kSilu);
  return sum;
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.logit_scale == 0) b.refuse("key granitehybrid.logit_scale is 0, by which logits are divided");
  if (!check_mamba2(b)) return b.finish();
  const auto residual = static_cast<float>(c.residual_scale);
  const BufferId hidden = embed_tokens(b, static_cast<float>(c.embedding_scale));
  const Rope rope = c.has_rope ? config_rope(b, false) : Rope{ir::kNoBuffer, ir::kNoBuffer, 0, false};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    const BufferId mixed =
        c.is_recurrent[layer] ? mamba2(b, norm) : self_attention(b, norm, attention_shape(c, layer), rope);
    b.add_into(hidden, b.scale(b.at_layer("mixer_scaled"), mixed, residual));
    const BufferId ffn = feed_forward(b, row_norm(b, "ffn_norm", hidden, "ffn_norm"), layer);
    b.add_into(hidden, b.scale(b.at_layer("ffn_scaled"), ffn, residual));
  }
  output_head(b, hidden, static_cast<float>(1 / c.logit_scale));
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_granitehybrid;
const Family kFamily_granitehybrid{"Granite 4 hybrids", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
