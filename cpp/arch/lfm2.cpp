// Builds the graph of LFM2. Most layers have a gated short convolution instead of attention, and keep only its last
// inputs. The others have attention with a norm of each q and k head; RoPE rotates pairs (i, i + n_rot / 2). A layer is
// a convolution if the file lists 0 KV heads for it. In lfm2moe the layers behind the first ones have experts, whose
// router takes sigmoids and chooses with a bias per expert. The final norm is stored as token_embd_norm.
#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"lfm2", "lfm2moe"};

// Adds out(C * conv(B * u)), where [B | C | u] are rows of one matrix. Returns [tokens, model_dim].
BufferId short_convolution(Builder& b, BufferId x) {
  const std::uint64_t d = b.config().model_dim;
  const auto part = [&](std::string_view name, std::uint64_t index) {
    const Matrix matrix =
        layer_matrix_rows(b, fmt::format("conv.{}", name), "shortconv.in_proj", index * d, 3 * d, d, d);
    return project(b, b.at_layer(fmt::format("conv_{}", name)), x, matrix);
  };
  const BufferId before = part("b", 0), behind = part("c", 1), in = part("u", 2);
  const BufferId conv =
      b.ssm_conv1d("conv", b.mul(b.at_layer("conv_in"), before, in),
                   b.layer_weight("conv.weight", "shortconv.conv.weight", {d, b.config().short_conv_width}),
                   ir::kNoBuffer, push::kConvNone);
  const BufferId y = b.mul(b.at_layer("conv_gated"), behind, conv);
  return project(b, "conv_out", "conv.out", y, "shortconv.out_proj", d);
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.short_conv_width < 2) {
    b.refuse(fmt::format("key {}.shortconv.l_cache is {}, at least 2 wanted", c.architecture, c.short_conv_width));
    return b.finish();
  }
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden, c.is_recurrent[layer] ? short_convolution(b, norm)
                                             : self_attention(b, norm, attention_shape(c, layer), rope));
    add_feed_forward(b, row_norm(b, "ffn_norm", hidden, "ffn_norm"), hidden, layer, {.gating = push::kSigmoid});
  }
  output_head(b, hidden, 1.0f, "token_embd_norm.weight");
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_lfm2;
const Family kFamily_lfm2{"LFM2", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
