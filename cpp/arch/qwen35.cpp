// Builds the graph of the Qwen hybrids: Qwen3-Next, Qwen 3.5 and 3.6, dense or with experts. Most layers are recurrent:
// a short convolution, then the gated delta rule over a state of fixed size. The others are attention layers whose
// output is multiplied by the sigmoid of a gate, which the query projection computes. RoPE rotates pairs (i, i + n_rot
// / 2) of the first n_rot elements of a head. In addition to the experts there is a shared expert with its own gate.
// Blocks for multi-token prediction follow the last layer in the file, or are alone in a file of their own. The first of
// them guesses tokens (build_draft).
#include "arch/blocks.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"qwen35", "qwen35moe", "qwen3next"};
constexpr float kL2NormEps = 1e-6f;

// Adds a recurrent layer (gated delta net) that reads x. Returns its output, [tokens, model_dim].
BufferId delta_net(Builder& b, BufferId x) {
  const auto& c = b.config();
  const std::uint32_t nk = c.ssm_k_heads, nv = c.ssm_v_heads, dk = c.ssm_k_dim, v_dim = c.ssm_inner_dim,
                      dv = v_dim / nv;
  const std::uint32_t channels = 2 * nk * dk + v_dim;
  const BufferId qkv = project(b, "ssm_qkv", "ssm.qkv", x, "attn_qkv", channels);
  const BufferId z = project(b, "ssm_z", "ssm.z", x, "attn_gate", v_dim);
  // In qwen3next one matrix computes beta and alpha, grouped by key head, and value heads are grouped in the same way.
  // The other models have two matrices, and value head h belongs to key head h mod nk.
  const bool grouped = b.layer_has("ssm_ba.weight");
  BufferId beta, alpha;
  if (grouped) {
    const BufferId both = project(b, "ssm_beta_alpha", "ssm.beta_alpha", x, "ssm_ba", 2 * nv);
    const std::uint32_t r = nv / nk;
    beta = b.slice(b.at_layer("ssm_beta"), both, 2 * r, 0, r);
    alpha = b.slice(b.at_layer("ssm_alpha"), both, 2 * r, r, r);
  } else {
    beta = project(b, "ssm_beta", "ssm.beta", x, "ssm_beta", nv);
    alpha = project(b, "ssm_alpha", "ssm.alpha", x, "ssm_alpha", nv);
  }
  const BufferId conv = b.ssm_conv1d(
      "ssm_conv", qkv, b.layer_weight("ssm.conv_weight", "ssm_conv1d.weight", {channels, c.ssm_conv_width}),
      ir::kNoBuffer, push::kConvSilu);
  const BufferId y =
      b.ssm_delta_net("ssm_delta", conv, beta, alpha, b.layer_weight("ssm.a", "ssm_a", {nv}),
                      b.layer_weight("ssm.dt_bias", "ssm_dt.bias", {nv}), {nk, nv, dk, dv, !grouped, kL2NormEps});
  const BufferId gated =
      b.ssm_gated_norm(b.at_layer("ssm_norm"), y, z, b.layer_weight("ssm.norm_weight", "ssm_norm.weight", {1, dv}),
                       static_cast<float>(c.norm_eps), dv);
  return project(b, "ssm_out", "ssm.out", gated, "ssm_out", c.model_dim);
}

// Adds attention with an output gate and returns its output. For each head, attn_q contains the query's rows and then
// the gate's rows.
BufferId gated_attention(Builder& b, BufferId x, const AttentionShape& s, const Rope& rope) {
  const BufferId both = project(b, "q_gate", "attn.q", x, "attn_q", std::uint64_t{2} * s.n_heads * s.head_dim);
  Qkv qkv;
  qkv.q = b.slice(b.at_layer("q"), both, 2 * s.head_dim, 0, s.head_dim);
  const BufferId gate = b.slice(b.at_layer("attn_gate"), both, 2 * s.head_dim, s.head_dim, s.head_dim);
  qkv.k = project(b, "k", "attn.k", x, "attn_k", std::uint64_t{s.n_kv_heads} * s.head_dim);
  qkv.v = project(b, "v", "attn.v", x, "attn_v", std::uint64_t{s.n_kv_heads} * s.v_head_dim);
  qkv.q = head_norm(b, "q_norm", qkv.q, "attn_q_norm", s.head_dim);
  qkv.k = head_norm(b, "k_norm", qkv.k, "attn_k_norm", s.head_dim);
  const BufferId y = b.sigmoid_mul(b.at_layer("attn_gated"), attend(b, qkv, s, rope), gate);
  return project(b, "attn_out", "attn.output", y, "attn_output", b.config().model_dim);
}

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  if (c.ssm_k_heads == 0 || c.ssm_v_heads % c.ssm_k_heads != 0 || c.ssm_v_heads == 0 || c.ssm_k_dim == 0 ||
      c.ssm_inner_dim % std::max(c.ssm_v_heads, 1u) != 0 || c.ssm_conv_width < 2) {
    b.refuse(fmt::format("ssm keys: {} key heads of {}, {} value heads, inner size {}, convolution over {}",
                         c.ssm_k_heads, c.ssm_k_dim, c.ssm_v_heads, c.ssm_inner_dim, c.ssm_conv_width));
    return b.finish();
  }
  if (!check_head_state(b)) return b.finish();
  // Some publishers put the block for multi-token prediction in a file of its own, with the architecture and the
  // metadata of the model.
  if (c.n_mtp_layers > 0 && !b.has_tensor("blk.0.attn_norm.weight") &&
      b.has_tensor(fmt::format("blk.{}.attn_norm.weight", c.n_layers))) {
    b.refuse(fmt::format(
        "the file has block {} alone, for multi-token prediction, of {} blocks: it is a draft model for the "
        "model's own file, which also runs without it",
        c.n_layers, c.n_layers + c.n_mtp_layers));
    return b.finish();
  }
  const BufferId hidden = embed_tokens(b, 1.0f);
  const Rope rope = config_rope(b, true);
  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const BufferId norm = row_norm(b, "attn_norm", hidden, "attn_norm");
    b.add_into(hidden,
               c.is_recurrent[layer] ? delta_net(b, norm) : gated_attention(b, norm, attention_shape(c, layer), rope));
    add_feed_forward(b, row_norm(b, "ffn_norm", hidden, "post_attention_norm"), hidden, layer);
  }
  output_head(b, hidden);
  return b.finish(mtp_blocks(c));
}

// The block reads the norms of the token's embedding and of the features, side by side, through a matrix. Then it is an
// attention layer and a feed-forward network as in the model. Embeddings, final norm and output matrix are the model's
// where the block has none. Its own features are the input of its next guess.
Result<ir::Graph> build_draft(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  Builder b(c.architecture, c, weights, options);
  b.set_layer(static_cast<int>(c.n_layers));
  if (!b.layer_has("nextn.eh_proj.weight")) {
    b.refuse(fmt::format("the file has no block for multi-token prediction: tensor \"{}\" is missing",
                         b.tensor_at_layer("nextn.eh_proj.weight")));
    return b.finish();
  }
  const auto own_or = [&](std::string_view own, const char* of_model) {
    return b.layer_has(own) ? b.tensor_at_layer(own) : std::string(of_model);
  };
  const std::string embeddings = own_or("nextn.embed_tokens.weight", "token_embd.weight");
  const BufferId table = b.weight("embed_table", embeddings, {c.vocab_size, c.model_dim});
  const BufferId token = b.embed("embedding", b.token_ids(), table, 1.0f);
  const BufferId features = b.request("features", DType::kF32, {ir::kTokens, c.model_dim});
  const BufferId both = b.concat(b.at_layer("mtp_input"), row_norm(b, "mtp_enorm", token, "nextn.enorm"),
                                 row_norm(b, "mtp_hnorm", features, "nextn.hnorm"), 1);
  const BufferId hidden =
      project(b, "hidden", both, layer_matrix(b, "mtp.eh_proj", "nextn.eh_proj", c.model_dim, b.width(both)));
  // Sizes that a file may give for each layer are those of its attention layers.
  const std::uint32_t last = c.n_layers - 1;
  AttentionShape shape = attention_shape(c, last);
  shape.n_kv_heads = c.n_kv_heads;
  b.add_into(hidden, gated_attention(b, row_norm(b, "attn_norm", hidden, "attn_norm"), shape, config_rope(b, true)));
  add_feed_forward(b, row_norm(b, "ffn_norm", hidden, "post_attention_norm"), hidden, last);
  const std::string norm = own_or("nextn.shared_head_norm.weight", "output_norm.weight"),
                    head = own_or("nextn.shared_head_head.weight",
                                  c.tied_embeddings ? "token_embd.weight" : "output.weight");
  b.head(hidden, b.weight("output_norm_weight", norm, {c.model_dim}),
         head == embeddings ? table : b.weight("output_weight", head, {c.vocab_size, c.model_dim}), 1.0f,
         static_cast<float>(c.final_logit_softcap));
  return b.finish({"blk.", "output", "token_embd.weight"});
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  return {{"rope", {scaled_rope_angles(c, weights)}}};
}

}  // namespace

extern const Family kFamily_qwen35;
const Family kFamily_qwen35{"Qwen3-Next, Qwen 3.5, Qwen 3.6", kArchitectures, build, rope_tables, nullptr, build_draft};

}  // namespace zinc_rt::arch
