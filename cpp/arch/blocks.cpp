#include "arch/blocks.h"

#include <cmath>
#include <optional>

#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {

std::vector<std::string> mtp_blocks(const ModelConfig& c) {
  std::vector<std::string> prefixes;
  for (std::uint32_t i = 0; i < c.n_mtp_layers; ++i) prefixes.push_back(fmt::format("blk.{}.", c.n_layers + i));
  return prefixes;
}

BufferId embed_tokens(Builder& b, float scale) {
  const auto& c = b.config();
  const BufferId table = b.weight("embed_table", "token_embd.weight", {c.vocab_size, c.model_dim});
  return b.embed("hidden", b.token_ids(), table, scale);
}

void output_head(Builder& b, BufferId hidden, float logit_scale, const std::string& norm_tensor) {
  const auto& c = b.config();
  const BufferId norm = b.weight("output_norm_weight", norm_tensor, {c.model_dim});
  if (!c.is_causal)
    b.refuse(fmt::format("key {}.attention.causal is false, and this family's attention is causal", c.architecture));
  if (b.options().pooling == Pooling::kCls)
    b.refuse("pooling cls is not there for a causal model, whose first token sees no other; mean and last are");
  if (b.options().pooling == Pooling::kRank)
    b.refuse("pooling rank is not there for a causal model, which has no head that scores; mean and last are");
  if (b.options().pooling != Pooling::kNone) {
    b.leave_out("output.weight");
    return b.embedding_head(hidden, norm);
  }
  const BufferId head = c.tied_embeddings ? b.weight("embed_table", "token_embd.weight", {c.vocab_size, c.model_dim})
                                          : b.weight("output_weight", "output.weight", {c.vocab_size, c.model_dim});
  b.head(hidden, norm, head, logit_scale, static_cast<float>(c.final_logit_softcap));
}

BufferId row_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor) {
  return row_norm(b, name, x, tensor, static_cast<float>(b.config().norm_eps));
}

BufferId row_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor, float eps) {
  const BufferId w = b.layer_weight(fmt::format("{}_weight", name), fmt::format("{}.weight", tensor), {b.width(x)});
  return b.row_norm(b.at_layer(name), x, w, eps);
}

BufferId head_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor, std::uint32_t head_dim) {
  const BufferId w =
      b.optional_layer_weight(fmt::format("attn.{}_weight", name), fmt::format("{}.weight", tensor), {head_dim});
  if (w == ir::kNoBuffer) return x;
  return b.rms_norm(b.at_layer(name), x, w, static_cast<float>(b.config().norm_eps), head_dim);
}

BufferId layer_scale(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t n) {
  b.leave_out(b.tensor_at_layer(fmt::format("{}.input_scale", tensor)));
  return b.optional_layer_weight(fmt::format("{}_scale", name), fmt::format("{}.scale", tensor), {n});
}

Matrix layer_matrix(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t n_out,
                    std::uint64_t n_in) {
  const BufferId weight =
      b.layer_weight(fmt::format("{}_weight", name), fmt::format("{}.weight", tensor), {n_out, n_in});
  return {weight, b.optional_layer_weight(fmt::format("{}_bias", name), fmt::format("{}.bias", tensor), {n_out}),
          layer_scale(b, name, tensor, 1)};
}

Matrix layer_matrix_rows(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t first,
                         std::uint64_t n_rows, std::uint64_t n_out, std::uint64_t n_in) {
  return {b.layer_weight_rows(fmt::format("{}_weight", name), fmt::format("{}.weight", tensor), first, n_rows,
                              {n_out, n_in}),
          ir::kNoBuffer, layer_scale(b, name, tensor, 1)};
}

void project_into(Builder& b, BufferId y, BufferId x, const Matrix& matrix) {
  b.linear(y, x, matrix.weight, matrix.bias);
  if (matrix.scale == ir::kNoBuffer) return;
  if (matrix.bias != ir::kNoBuffer)
    b.refuse("a matrix with both a bias and a scale (as NVFP4 has) is not supported: LINEAR adds the bias first");
  b.scale_into(y, matrix.scale);
}

BufferId project(Builder& b, std::string name, BufferId x, const Matrix& matrix) {
  const BufferId y = b.activation(std::move(name), {b.rows(x), b.rows(matrix.weight)});
  project_into(b, y, x, matrix);
  return y;
}

BufferId project(Builder& b, std::string_view name, std::string_view weight_name, BufferId x, std::string_view tensor,
                 std::uint64_t n_out) {
  const Matrix matrix = layer_matrix(b, weight_name, tensor, n_out, b.width(x));
  return project(b, b.at_layer(name), x, matrix);
}

AttentionShape attention_shape(const ModelConfig& c, std::uint32_t layer) {
  const double scale = c.attention_scale > 0 ? c.attention_scale : 1.0 / std::sqrt(static_cast<double>(c.head_dim));
  return {c.n_heads,        c.n_kv_heads_per_layer[layer],          c.head_dim, c.v_head_dim, static_cast<float>(scale),
          c.sliding_window, static_cast<float>(c.attention_softcap)};
}

Rope config_rope(Builder& b, bool neox) {
  const auto& c = b.config();
  if (c.rope_scaling_type == "longrope") b.refuse("rope scaling \"longrope\" is not supported without phi3's factors");
  return {b.constant("rope", {b.options().max_context, c.rope_dim}), b.positions(), c.rope_dim, neox};
}

bool queries_have_temperature(Builder& b) {
  const auto& c = b.config();
  return c.temperature_scale > 0 && b.options().max_context > c.rope_original_context;
}

BufferId rotate(Builder& b, std::string_view name, BufferId x, const Rope& rope, std::uint32_t head_dim) {
  if (rope.table == ir::kNoBuffer) return x;
  return b.rope(b.at_layer(name), x, rope.positions, rope.table, head_dim, rope.n_rot, rope.neox);
}

Qkv project_qkv(Builder& b, BufferId x, const AttentionShape& s) {
  const std::uint64_t q_dim = std::uint64_t{s.n_heads} * s.head_dim, k_dim = std::uint64_t{s.n_kv_heads} * s.head_dim,
                      v_dim = std::uint64_t{s.n_kv_heads} * s.v_head_dim;
  if (!b.layer_has("attn_qkv.weight")) {
    const BufferId q = project(b, "q", "attn.q", x, "attn_q", q_dim);
    const BufferId k = project(b, "k", "attn.k", x, "attn_k", k_dim);
    return {q, k, project(b, "v", "attn.v", x, "attn_v", v_dim)};
  }
  const auto part = [&](std::string_view name, std::uint64_t first, std::uint64_t n) {
    const std::uint64_t n_rows = q_dim + k_dim + v_dim;
    const Matrix matrix = layer_matrix_rows(b, fmt::format("attn.{}", name), "attn_qkv", first, n_rows, n, b.width(x));
    return project(b, b.at_layer(name), x, matrix);
  };
  const BufferId q = part("q", 0, q_dim), k = part("k", q_dim, k_dim);
  return {q, k, part("v", q_dim + k_dim, v_dim)};
}

void norm_rows(Builder& b, Qkv& qkv) {
  qkv.q = row_norm(b, "q_norm", qkv.q, "attn_q_norm");
  qkv.k = row_norm(b, "k_norm", qkv.k, "attn_k_norm");
}

BufferId attend(Builder& b, const Qkv& qkv, const AttentionShape& s, const Rope& rope) {
  const BufferId q = rotate(b, "q_rot", qkv.q, rope, s.head_dim), k = rotate(b, "k_rot", qkv.k, rope, s.head_dim);
  return attend(b, {q, k, qkv.v}, s);
}

BufferId attend(Builder& b, const Qkv& qkv, const AttentionShape& s) {
  const auto cache = b.kv_cache(s.n_kv_heads, s.head_dim, s.v_head_dim);
  b.kv_write(qkv.k, qkv.v, cache.k, cache.v, s.head_dim);
  return b.flash_attn(b.at_layer("attn"), qkv.q, cache.k, cache.v,
                      {s.n_heads, s.n_kv_heads, s.head_dim, s.v_head_dim, s.scale, s.window, s.softcap, s.sinks});
}

BufferId self_attention(Builder& b, BufferId x, const AttentionShape& s, const Rope& rope) {
  Qkv qkv = project_qkv(b, x, s);
  qkv.q = head_norm(b, "q_norm", qkv.q, "attn_q_norm", s.head_dim);
  qkv.k = head_norm(b, "k_norm", qkv.k, "attn_k_norm", s.head_dim);
  return project(b, "attn_out", "attn.output", attend(b, qkv, s, rope), "attn_output", b.config().model_dim);
}

bool check_head_state(Builder& b) {
  // On T-CPU each thread has memory for the state of a head. In known models it has up to 2^14 values.
  constexpr std::uint64_t kMostValues = 1 << 20;
  const auto& c = b.config();
  const std::uint64_t width = c.ssm_inner_dim / c.ssm_v_heads, n_values = c.ssm_k_dim * width;
  if (n_values <= kMostValues) return true;
  b.refuse(fmt::format("ssm keys: a head's state has {} rows of {} values, {} in all, at most {} allowed", c.ssm_k_dim,
                       width, n_values, kMostValues));
  return false;
}

BufferId relu2_ffn(Builder& b, BufferId x, std::uint64_t ffn_dim) {
  const BufferId up = project(b, "up", "ffn.up", x, "ffn_up", ffn_dim);
  return project(b, "ffn_out", "ffn.down", b.relu2(b.at_layer("relu2"), up), "ffn_down", b.width(x));
}

BufferId dense_ffn(Builder& b, BufferId x, std::uint64_t ffn_dim, std::uint32_t act) {
  const std::uint64_t d = b.width(x);
  BufferId gate, up;
  if (b.layer_has("ffn_gate.weight")) {
    gate = project(b, "gate", "ffn.gate", x, "ffn_gate", ffn_dim);
    up = project(b, "up", "ffn.up", x, "ffn_up", ffn_dim);
  } else {
    const auto half = [&](std::string_view name, std::uint64_t first) {
      const Matrix matrix = layer_matrix_rows(b, fmt::format("ffn.{}", name), "ffn_up", first, 2 * ffn_dim, ffn_dim, d);
      return project(b, b.at_layer(name), x, matrix);
    };
    gate = half("gate", 0);
    up = half("up", ffn_dim);
  }
  return project(b, "ffn_out", "ffn.down", b.glu(b.at_layer("glu"), gate, up, act), "ffn_down", d);
}

namespace {

std::optional<std::uint32_t> gating_of(ExpertGating gating) {
  switch (gating) {
    case ExpertGating::kNone: break;
    case ExpertGating::kSoftmax:
    case ExpertGating::kSoftmaxOfChosen: return push::kSoftmax;
    case ExpertGating::kSigmoid: return push::kSigmoid;
  }
  return std::nullopt;
}

}  // namespace

BufferId experts(Builder& b, BufferId router_input, BufferId x, std::uint32_t act, const RouterDefaults& defaults) {
  const auto& c = b.config();
  const std::uint64_t d = b.width(x), e = c.n_experts, f = c.expert_ffn_dim;
  const bool is_of_chosen = c.expert_gating == ExpertGating::kSoftmaxOfChosen;
  const auto routing = b.moe_gate_topk(
      router_input, {.weight = b.layer_weight("moe.router_weight", "ffn_gate_inp.weight", {e, b.width(router_input)}),
                     .bias = b.optional_layer_weight("moe.router_bias", "ffn_gate_inp.bias", {e}),
                     .choice_bias = b.optional_layer_weight("moe.choice_bias", "exp_probs_b.bias", {e}),
                     .n_used = c.n_experts_used,
                     .renormalize = is_of_chosen || c.expert_weights_norm.value_or(defaults.renormalize),
                     .scale = static_cast<float>(c.expert_weights_scale),
                     .gating = gating_of(c.expert_gating).value_or(defaults.gating),
                     .groups = c.n_expert_groups,
                     .groups_used = c.n_expert_groups_used});
  const bool is_fused = b.layer_has("ffn_gate_up_exps.weight"),
             has_gate = is_fused || b.layer_has("ffn_gate_exps.weight");
  const auto matrix = [&](std::string_view name, std::string_view tensor, std::uint64_t first) {
    if (is_fused) return b.layer_weight_rows(name, "ffn_gate_up_exps.weight", first, 2 * f, {e, f, d});
    return b.layer_weight(name, tensor, {e, f, d});
  };
  const BufferId gate_w = has_gate ? matrix("moe.gate_weight", "ffn_gate_exps.weight", 0) : ir::kNoBuffer,
                 up_w = matrix("moe.up_weight", "ffn_up_exps.weight", f);
  const auto add_bias = [&](BufferId y, std::string_view name, std::string_view tensor, std::uint64_t width) {
    const BufferId bias = b.optional_layer_weight(name, tensor, {e, width});
    if (bias != ir::kNoBuffer) b.moe_add_bias(y, routing.ids, bias);
  };
  const auto product = [&](std::string_view name, BufferId w, std::string_view scale_name, std::string_view tensor) {
    const BufferId y = b.moe_linear(b.at_layer(name), x, w, routing.ids, 1);
    const BufferId scale = layer_scale(b, scale_name, is_fused ? "ffn_gate_up_exps" : tensor, e);
    if (scale != ir::kNoBuffer) b.moe_scale_into(y, routing.ids, scale);
    return y;
  };
  const BufferId gate = has_gate ? product("expert_gate", gate_w, "moe.gate", "ffn_gate_exps") : ir::kNoBuffer,
                 up = product("expert_up", up_w, "moe.up", "ffn_up_exps");
  if (has_gate) add_bias(gate, "moe.gate_bias", "ffn_gate_exps.bias", f);
  add_bias(up, "moe.up_bias", "ffn_up_exps.bias", f);
  const BufferId inner =
      has_gate ? b.moe_glu(b.at_layer("expert_glu"), gate, up, act) : b.relu2(b.at_layer("expert_relu2"), up);
  const BufferId down =
      b.moe_linear(b.at_layer("expert_down"), inner,
                   b.layer_weight("moe.down_weight", "ffn_down_exps.weight", {e, d, f}), routing.ids, c.n_experts_used);
  BufferId down_scale = layer_scale(b, "moe.down", "ffn_down_exps", e);
  // MOE_SUM would multiply the bias, too.
  if (down_scale != ir::kNoBuffer && b.layer_has("ffn_down_exps.bias")) {
    b.moe_scale_into(down, routing.ids, down_scale);
    down_scale = ir::kNoBuffer;
  }
  add_bias(down, "moe.down_bias", "ffn_down_exps.bias", d);
  return b.moe_sum(b.at_layer("expert_sum"), down, routing, down_scale);
}

void add_shared_expert(Builder& b, BufferId x, BufferId hidden, std::uint32_t act) {
  const std::uint64_t d = b.config().model_dim, f = b.layer_rows("ffn_up_shexp.weight");
  if (f == 0) return;
  if (!b.layer_has("ffn_gate_shexp.weight")) {
    const BufferId up = project(b, "shared_up", "moe.shared_up", x, "ffn_up_shexp", f);
    const BufferId inner = b.relu2(b.at_layer("shared_relu2"), up);
    return b.add_into(hidden, project(b, "shared_out", "moe.shared_down", inner, "ffn_down_shexp", d));
  }
  b.shared_expert(x, b.layer_weight("moe.shared_gate_weight", "ffn_gate_shexp.weight", {f, d}),
                  b.layer_weight("moe.shared_up_weight", "ffn_up_shexp.weight", {f, d}),
                  b.layer_weight("moe.shared_down_weight", "ffn_down_shexp.weight", {d, f}),
                  b.optional_layer_weight("moe.shared_router_weight", "ffn_gate_inp_shexp.weight", {d}), hidden, act);
}

void add_feed_forward(Builder& b, BufferId x, BufferId hidden, std::uint32_t layer, const RouterDefaults& router) {
  if (!b.layer_has("ffn_gate_inp.weight")) {
    b.add_into(hidden, dense_ffn(b, x, b.config().ffn_dim_per_layer[layer], push::kSilu));
    return;
  }
  b.add_into(hidden, experts(b, x, x, push::kSilu, router));
  add_shared_expert(b, x, hidden, push::kSilu);
}

}  // namespace zinc_rt::arch
