// Builds the graph of the llama family: Llama 2 and 3.x, Mistral, SmolLM2 and other models stored as `llama`. A layer
// computes x += attention(norm(x)), then x += down(silu(gate(norm(x))) * up(norm(x))). RoPE rotates pairs (2i, 2i + 1).
// Llama 3's frequency scaling is a tensor of divisors, rope_freqs.weight. A sliding window applies if the file has the
// key.
#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"llama"};
constexpr std::string_view kDivisors = "rope_freqs.weight";

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.n_experts > 0) b.refuse(fmt::format("{} experts are not supported", c.n_experts));
  const BufferId hidden = embed_tokens(b, static_cast<float>(c.embedding_scale));
  const Rope rope = config_rope(b, false);
  b.optional_f32("rope_freqs", std::string(kDivisors), {c.rope_dim / 2});
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, self_attention(b, norm, attention_shape(c, layer), rope));
    const BufferId ffn_norm = row_norm(b, "ffn_norm", hidden, "ffn_norm");
    b.add_into(hidden, dense_ffn(b, ffn_norm, c.ffn_dim_per_layer[layer], push::kSilu));
  }
  output_head(b, hidden);
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights, kDivisors)}}};
}

}  // namespace

extern const Family kFamily_llama;
const Family kFamily_llama{"Llama, Mistral, SmolLM2", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
