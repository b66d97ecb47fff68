// Builds the graph of SmolLM3: the llama layer, but every fourth layer encodes no positions. RoPE rotates pairs (2i, 2i
// + 1).
#include "arch/blocks.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"smollm3"};
constexpr std::uint32_t kNoRopeInterval = 4;  // a constant because no metadata key states it

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, false), no_rope{ir::kNoBuffer, ir::kNoBuffer, 0, false};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden,
               self_attention(b, norm, attention_shape(c, layer), (layer + 1) % kNoRopeInterval == 0 ? no_rope : rope));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    b.add_into(hidden, dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_smollm3;
const Family kFamily_smollm3{"SmolLM3", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
