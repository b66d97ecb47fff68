// The llama family: Llama 2 and 3.x, Mistral, SmolLM2 and what else is stored as `llama`.
// A layer: x += attention(norm(x)), x += down(silu(gate(norm(x))) * up(norm(x))). RoPE rotates pairs (2i, 2i + 1).
// Llama 3's frequency scaling is a tensor of divisors, rope_freqs.weight; a sliding window is honoured where the file
// has the key.
#include <cmath>

#include "arch/builder.h"
#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {
namespace {

constexpr std::string_view kArchitectures[] = {"llama"};

Result<ir::Graph> build(const ModelConfig& c, const Weights& weights, const GraphOptions& options) {
  if (c.n_experts > 0)
    return fail(StatusCode::kUnavailable, "[arch] llama with {} experts is not supported", c.n_experts);
  if (c.rope_scaling_type != "none" && c.rope_scaling_type != "linear" && weights.find("rope_freqs.weight") == nullptr)
    return fail(StatusCode::kUnavailable,
                "[arch] llama with rope scaling \"{}\" is not supported; none, linear and rope_freqs.weight are",
                c.rope_scaling_type);
  if (const Tensor* divisors = weights.find("rope_freqs.weight"); divisors != nullptr && divisors->dtype != DType::kF32)
    return fail(StatusCode::kUnavailable, "[arch] rope_freqs.weight of type {} is not supported, f32 is",
                to_string(divisors->dtype));
  Builder b(c.architecture, c, weights, options);
  const auto eps = static_cast<float>(c.norm_eps);
  const std::uint64_t d = c.model_dim, q_dim = std::uint64_t{c.n_heads} * c.head_dim;
  const auto residual = static_cast<float>(c.residual_scale);

  const BufferId rope = b.constant("rope", {options.max_context, c.rope_dim});
  const BufferId table = b.weight("embed_table", "token_embd.weight", {c.vocab_size, d});
  const BufferId hidden = b.embed("hidden", b.token_ids(), table, static_cast<float>(c.embedding_scale));
  b.optional_weight("rope_freqs", "rope_freqs.weight", {c.rope_dim / 2});

  for (std::uint32_t layer = 0; layer < c.n_layers; ++layer) {
    b.set_layer(static_cast<int>(layer));
    const std::uint64_t n_kv = c.n_kv_heads_per_layer[layer], k_dim = n_kv * c.head_dim, v_dim = n_kv * c.v_head_dim,
                        ffn = c.ffn_dim_per_layer[layer];
    const auto weight = [&](std::string_view name, std::string_view tensor, std::initializer_list<std::uint64_t> dims) {
      return b.weight(b.at_layer(name), fmt::format("blk.{}.{}.weight", layer, tensor), dims);
    };
    const auto bias = [&](std::string_view name, std::string_view tensor, std::uint64_t n) {
      return b.optional_weight(b.at_layer(name), fmt::format("blk.{}.{}.bias", layer, tensor), {n});
    };
    const auto add = [&](BufferId y) {
      b.add_into(hidden, residual == 1.0f ? y : b.scale(b.at_layer("scaled"), y, residual));
    };

    const BufferId norm =
        b.rms_norm(b.at_layer("attn_norm"), hidden, weight("attn.norm_weight", "attn_norm", {d}), eps, c.model_dim);
    const BufferId q = b.linear(b.at_layer("q"), norm, weight("attn.q_weight", "attn_q", {q_dim, d}),
                                bias("attn.q_bias", "attn_q", q_dim));
    const BufferId k = b.linear(b.at_layer("k"), norm, weight("attn.k_weight", "attn_k", {k_dim, d}),
                                bias("attn.k_bias", "attn_k", k_dim));
    const BufferId v = b.linear(b.at_layer("v"), norm, weight("attn.v_weight", "attn_v", {v_dim, d}),
                                bias("attn.v_bias", "attn_v", v_dim));
    const BufferId q_rot = b.rope(b.at_layer("q_rot"), q, b.positions(), rope, c.head_dim, c.rope_dim, false);
    const BufferId k_rot = b.rope(b.at_layer("k_rot"), k, b.positions(), rope, c.head_dim, c.rope_dim, false);
    const BufferId kv_k =
        b.state(b.at_layer("kv_k"), options.kv_dtype, {options.n_pages, 16, static_cast<std::uint32_t>(k_dim)});
    const BufferId kv_v =
        b.state(b.at_layer("kv_v"), options.kv_dtype, {options.n_pages, 16, static_cast<std::uint32_t>(v_dim)});
    b.kv_write(k_rot, v, kv_k, kv_v, c.head_dim);
    const double scale = c.attention_scale > 0 ? c.attention_scale : 1.0 / std::sqrt(static_cast<double>(c.head_dim));
    const BufferId attn =
        b.flash_attn(b.at_layer("attn"), q_rot, kv_k, kv_v,
                     {c.n_heads, static_cast<std::uint32_t>(n_kv), c.head_dim, c.v_head_dim, static_cast<float>(scale),
                      c.sliding_window, static_cast<float>(c.attention_softcap)});
    add(b.linear(b.at_layer("attn_out"), attn,
                 weight("attn.output_weight", "attn_output", {d, std::uint64_t{c.n_heads} * c.v_head_dim}),
                 bias("attn.output_bias", "attn_output", d)));

    const BufferId ffn_norm =
        b.rms_norm(b.at_layer("ffn_norm"), hidden, weight("ffn.norm_weight", "ffn_norm", {d}), eps, c.model_dim);
    const BufferId gate = b.linear(b.at_layer("gate"), ffn_norm, weight("ffn.gate_weight", "ffn_gate", {ffn, d}),
                                   bias("ffn.gate_bias", "ffn_gate", ffn));
    const BufferId up = b.linear(b.at_layer("up"), ffn_norm, weight("ffn.up_weight", "ffn_up", {ffn, d}),
                                 bias("ffn.up_bias", "ffn_up", ffn));
    const BufferId glu = b.glu(b.at_layer("glu"), gate, up, push::kSilu);
    add(b.linear(b.at_layer("ffn_out"), glu, weight("ffn.down_weight", "ffn_down", {d, ffn}),
                 bias("ffn.down_bias", "ffn_down", d)));
  }
  const BufferId output_norm = b.weight("output_norm_weight", "output_norm.weight", {d});
  const BufferId head = c.tied_embeddings ? table : b.weight("output_weight", "output.weight", {c.vocab_size, d});
  b.head(hidden, output_norm, head, static_cast<float>(c.logit_scale), static_cast<float>(c.final_logit_softcap));
  return b.finish();
}

std::vector<RopeTable> rope_tables(const ModelConfig& c, const Weights& weights) {
  RopeTable table{"rope", c.rope_dim, {}, 1.0};
  const Tensor* divisors = weights.find("rope_freqs.weight");
  for (std::uint32_t i = 0; i < c.rope_dim / 2; ++i) {
    double frequency = std::pow(c.rope_theta, -2.0 * i / c.rope_dim);
    if (c.rope_scaling_type == "linear") frequency /= c.rope_scaling_factor;
    if (divisors != nullptr) {
      float divisor;
      __builtin_memcpy(&divisor, divisors->data.data() + i * 4, 4);
      frequency /= divisor;
    }
    table.inverse_frequencies.push_back(frequency);
  }
  return {table};
}

}  // namespace

extern const Family kFamily_llama;
const Family kFamily_llama{"Llama, Mistral, SmolLM2", kArchitectures, build, rope_tables};

}  // namespace zinc_rt::arch
