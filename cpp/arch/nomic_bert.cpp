// Builds the graph of nomic-bert (nomic-embed-text), encoders like BERT for longer texts. Instead of adding a table of
// positions, it rotates q and k in pairs (i, i + head_dim / 2). q, k and v are rows of one matrix. The feed-forward
// network computes down(up(x) * silu(gate(x))). The projections have no biases.
#include "arch/encoder.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"nomic-bert"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  refuse_what_encoders_lack(b);
  const BufferId hidden = encoder_embeddings(b, false);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    encoder_attention(b, hidden, layer, rope);
    add_and_norm(b, hidden, dense_ffn(b, hidden, c.ffn_dim_per_layer[layer], push::kSilu));
  }
  return encoder_head(b, hidden);
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_nomic_bert;
const Family kFamily_nomic_bert{"Nomic BERT", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
