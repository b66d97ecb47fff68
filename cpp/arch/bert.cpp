// Builds the graph of BERT encoders, such as MiniLM, BGE and E5. The embeddings of tokens, positions and token types
// are summed and normalized. A layer computes x = norm(x + attention(x)) and then x = norm(x + down(gelu(up(x)))), with
// biases everywhere. Tokens have type 0, except those of the second text of a pair, which have type 1.
#include "arch/encoder.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"bert"};

BufferId feed_forward(Builder& b, BufferId x, std::uint64_t ffn_dim) {
  const BufferId up = project(b, "up", "ffn.up", x, "ffn_up", ffn_dim);
  return project(b, "ffn_out", "ffn.down", b.gelu(b.at_layer("gelu"), up), "ffn_down", b.config().model_dim);
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  refuse_what_encoders_lack(b);
  const BufferId hidden = encoder_embeddings(b, true);
  const Rope no_rope{ir::kNoBuffer, ir::kNoBuffer, 0, false};
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    encoder_attention(b, hidden, layer, no_rope);
    add_and_norm(b, hidden, feed_forward(b, hidden, c.ffn_dim_per_layer[layer]));
  }
  return encoder_head(b, hidden);
}

std::vector<RopeTable> rope_tables(const ModelConfig&, const Weights&) {
  return {};
}

}  // namespace

extern const Family kFamily_bert;
const Family kFamily_bert{"BERT", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
