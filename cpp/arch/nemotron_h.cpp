// Builds the graph of Nemotron-H and Nemotron 3: each layer is one mixer, Mamba 2, attention or a feed-forward network,
// with one norm before it. A layer with a feed-forward length is a network; of the others, a layer with KV heads is
// attention, which encodes no positions. The networks have no gate: down(relu2(up(x))). In nemotron_h_moe they are
// experts and a shared expert. The router takes sigmoids and chooses with a bias per expert. Experts may read and write
// rows of another width, for which two matrices exist. Blocks for multi-token prediction follow the last layer and are
// not run.
#include "arch/mamba2.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"nemotron_h", "nemotron_h_moe"};

// Adds the outputs of the layer's network, which reads x, to `hidden`.
void feed_forward(Builder& b, BufferId x, BufferId hidden, std::uint32_t layer) {
  const auto& c = b.config();
  if (c.n_experts == 0) return b.add_into(hidden, relu2_ffn(b, x, c.ffn_dim_per_layer[layer]));
  const RouterDefaults router{.gating = push::kSigmoid, .renormalize = false};
  if (c.expert_latent_dim == 0) {
    b.add_into(hidden, experts(b, x, x, push::kSilu, router));
  } else {
    const BufferId in = project(b, "latent_down", "moe.latent_down", x, "ffn_latent_down", c.expert_latent_dim);
    const BufferId sum = experts(b, x, in, push::kSilu, router);
    b.add_into(hidden, project(b, "latent_up", "moe.latent_up", sum, "ffn_latent_up", c.model_dim));
  }
  add_shared_expert(b, x, hidden, push::kSilu);
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (!check_mamba2(b)) return b.finish();
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope no_rope{ir::kNoBuffer, ir::kNoBuffer, 0, false};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    if (c.ffn_dim_per_layer[layer] > 0)
      feed_forward(b, norm, hidden, layer);
    else if (c.is_recurrent[layer])
      b.add_into(hidden, mamba2(b, norm));
    else
      b.add_into(hidden, self_attention(b, norm, attention_shape(c, layer), no_rope));
  }
  output_head(b, hidden);
  return b.finish(mtp_blocks(c));
}

std::vector<RopeTable> rope_tables(const ModelConfig&, const Weights&) {
  return {};
}

}  // namespace

extern const Family kFamily_nemotron_h;
const Family kFamily_nemotron_h{"Nemotron-H, Nemotron 3", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
