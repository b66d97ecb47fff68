// Implements the functions of Builder that add a node. Each op has one such function, which sets the op's operands and
// attributes.
#include "arch/builder.h"
#include "base/error.h"
#include "ir/op_rules.h"
#include "kernels/common/kv_page.h"
#include "kernels/common/logprobs.h"
#include "kernels/common/sample_params.h"
#include "kernels/common/slot_field.h"
#include "kernels/common/state_run.h"

namespace zinc_rt::arch {

using ir::Node;
using ir::Op;

BufferId Builder::embed(std::string name, BufferId ids, BufferId table, float scale) {
  const BufferId y = activation(std::move(name), {rows(ids), width(table)});
  const bool may_name_fields = options_.keeps_tokens && ids == token_ids_;
  Node n =
      node(Op::EMBED,
           {ids, table, may_name_fields ? slots_ : ir::kNoBuffer, may_name_fields ? slot_table() : ir::kNoBuffer}, {y});
  ir::set_attr(n, "scale", scale);
  push(n);
  return y;
}

BufferId Builder::rms_norm(std::string name, BufferId x, BufferId w, float eps, std::uint32_t group) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::RMS_NORM, {x, w}, {y});
  ir::set_attr(n, "eps", eps);
  ir::set_attr(n, "group", group);
  push(n);
  return y;
}

void Builder::layer_norm_into(BufferId x, BufferId w, BufferId b, float eps) {
  Node n = node(Op::LAYER_NORM, {x, w, b}, {x});
  ir::set_attr(n, "eps", eps);
  push(n);
}

void Builder::row_norm_to(BufferId y, BufferId x, BufferId w, float eps) {
  Node n = has_layer_norms_ ? node(Op::LAYER_NORM, {x, w, ir::kNoBuffer}, {y}) : node(Op::RMS_NORM, {x, w}, {y});
  ir::set_attr(n, "eps", eps);
  if (!has_layer_norms_) ir::set_attr(n, "group", width(x));
  push(n);
}

BufferId Builder::row_norm(std::string name, BufferId x, BufferId w, float eps) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  row_norm_to(y, x, w, eps);
  return y;
}

void Builder::linear(BufferId y, BufferId x, BufferId w, BufferId bias) {
  push(node(Op::LINEAR, {x, w, bias}, {y}));
}

BufferId Builder::rope(std::string name, BufferId x, BufferId pos, BufferId table, std::uint32_t head_dim,
                       std::uint32_t n_rot, bool neox) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::ROPE, {x, pos, table}, {y});
  ir::set_attr(n, "head_dim", head_dim);
  ir::set_attr(n, "n_rot", n_rot);
  ir::set_attr(n, "neox", std::uint32_t{neox});
  push(n);
  return y;
}

Builder::KvCache Builder::kv_cache(std::uint32_t n_heads, std::uint32_t k_dim, std::uint32_t v_dim) {
  const auto part = [&](const char* name, DType type, std::uint32_t head_dim) {
    const auto row = static_cast<std::uint32_t>(kv_row(*find_kv_cell(type), n_heads, head_dim));
    return state(at_layer(name), type, {options_.n_pages, kPageTokens, row});
  };
  return {part("kv_k", options_.kv.k, k_dim), part("kv_v", options_.kv.v, v_dim)};
}

void Builder::kv_write(BufferId k, BufferId v, BufferId kv_k, BufferId kv_v, std::uint32_t head_dim) {
  Node n = node(Op::KV_WRITE_BATCHED, {k, v, positions_, slots_, page_table_, kv_k, kv_v}, {kv_k, kv_v});
  ir::set_attr(n, "head_dim", head_dim);
  push(n);
}

BufferId Builder::flash_attn(std::string name, BufferId q, BufferId kv_k, BufferId kv_v, const Attention& attention) {
  // `seen` holds, for each token, the last position to which the token attends. With causal attention that is the
  // token's own position, else the last position of its text.
  const BufferId seen = config_.is_causal ? positions_ : request("text_ends", DType::kI32, {ir::kTokens});
  const BufferId y = activation(std::move(name), {rows(q), attention.n_heads * attention.v_head_dim});
  const Op op = options_.stage == ir::Stage::kDecode ? Op::FLASH_ATTN : Op::FLASH_ATTN_BATCHED;
  Node n = node(op, {q, kv_k, kv_v, seen, slots_, page_table_, attention.sinks}, {y});
  ir::set_attr(n, "n_heads", attention.n_heads);
  ir::set_attr(n, "n_kv_heads", attention.n_kv_heads);
  ir::set_attr(n, "head_dim", attention.head_dim);
  ir::set_attr(n, "v_head_dim", attention.v_head_dim);
  ir::set_attr(n, "scale", attention.scale);
  ir::set_attr(n, "window", attention.window);
  ir::set_attr(n, "softcap", attention.softcap);
  push(n);
  return y;
}

void Builder::add_into(BufferId x, BufferId y) {
  push(node(Op::ADD, {x, y}, {x}));
}

BufferId Builder::glu(std::string name, BufferId gate, BufferId up, std::uint32_t act) {
  const BufferId y = activation(std::move(name), {rows(gate), width(gate)});
  Node n = node(Op::GLU, {gate, up}, {y});
  ir::set_attr(n, "act", act);
  push(n);
  return y;
}

BufferId Builder::scale(std::string name, BufferId x, float factor) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  scale_to(y, x, factor);
  return y;
}

void Builder::scale_to(BufferId y, BufferId x, float factor) {
  Node n = node(Op::SCALE, {x, ir::kNoBuffer}, {y});
  ir::set_attr(n, "scale", factor);
  push(n);
}

void Builder::give_features(BufferId x) {
  features_ = output("features", DType::kF32, {ir::kTokens, width(x)});
  scale_to(features_, x, 1.0f);
}

void Builder::scale_into(BufferId x, BufferId w) {
  Node n = node(Op::SCALE, {x, w}, {x});
  ir::set_attr(n, "scale", 1.0f);
  push(n);
}

BufferId Builder::gelu(std::string name, BufferId x) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  push(node(Op::GELU, {x}, {y}));
  return y;
}

BufferId Builder::relu2(std::string name, BufferId x) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  push(node(Op::RELU2, {x}, {y}));
  return y;
}

BufferId Builder::mul(std::string name, BufferId x, BufferId y) {
  const BufferId z = activation(std::move(name), {rows(x), width(x)});
  push(node(Op::MUL, {x, y}, {z}));
  return z;
}

BufferId Builder::sigmoid_mul(std::string name, BufferId x, BufferId gate) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  push(node(Op::SIGMOID_MUL, {x, gate}, {y}));
  return y;
}

BufferId Builder::slice(std::string name, BufferId x, std::uint32_t group, std::uint32_t first, std::uint32_t width) {
  const std::uint32_t groups = parts(this->width(x), group);
  const BufferId y = activation(std::move(name), {rows(x), groups * width});
  Node n = node(Op::SLICE, {x}, {y});
  ir::set_attr(n, "groups", groups);
  ir::set_attr(n, "group", group);
  ir::set_attr(n, "first", first);
  ir::set_attr(n, "width", width);
  push(n);
  return y;
}

BufferId Builder::concat(std::string name, BufferId a, BufferId b, std::uint32_t groups) {
  const std::uint32_t first = parts(width(a), groups), both = first + parts(width(b), groups);
  const BufferId y = activation(std::move(name), {rows(a), groups * both});
  concat_into(y, a, b, groups);
  return y;
}

void Builder::concat_into(BufferId y, BufferId a, BufferId b, std::uint32_t groups) {
  const std::uint32_t first = parts(width(a), groups);
  Node n = node(Op::CONCAT, {a, b}, {y});
  ir::set_attr(n, "groups", groups);
  ir::set_attr(n, "first", first);
  ir::set_attr(n, "width", first + parts(width(b), groups));
  push(n);
}

BufferId Builder::linear_heads(std::string name, BufferId x, BufferId w) {
  const auto out = w == ir::kNoBuffer ? ir::Dim(1) : graph_.buffer(w).dims[0].n * graph_.buffer(w).dims[1].n;
  const BufferId y = activation(std::move(name), {rows(x), out});
  push(node(Op::LINEAR_HEADS, {x, w}, {y}));
  return y;
}

Builder::Routing Builder::moe_gate_topk(BufferId x, const Router& router) {
  const BufferId logits = activation(at_layer("router_logits"), {rows(x), rows(router.weight)});
  const Routing routing{activation(at_layer("expert_ids"), {rows(x), router.n_used}, DType::kI32),
                        activation(at_layer("expert_weights"), {rows(x), router.n_used})};
  Node n = node(Op::MOE_GATE_TOPK, {x, router.weight, router.bias, router.choice_bias},
                {logits, routing.ids, routing.weights});
  ir::set_attr(n, "n_used", router.n_used);
  ir::set_attr(n, "renormalize", std::uint32_t{router.renormalize});
  ir::set_attr(n, "scale", router.scale);
  ir::set_attr(n, "gating", router.gating);
  ir::set_attr(n, "groups", router.groups);
  ir::set_attr(n, "groups_used", router.groups_used);
  push(n);
  return routing;
}

BufferId Builder::moe_linear(std::string name, BufferId x, BufferId w, BufferId ids, std::uint32_t rows) {
  const std::uint32_t out = w == ir::kNoBuffer ? 1 : graph_.buffer(w).dims[1].n;
  const BufferId y = activation(std::move(name), {this->rows(x), width(ids) * out});
  Node n = node(Op::MOE_LINEAR, {x, w, ids}, {y});
  ir::set_attr(n, "rows", rows);
  push(n);
  return y;
}

void Builder::moe_add_bias(BufferId y, BufferId ids, BufferId bias) {
  push(node(Op::MOE_ADD_BIAS, {y, ids, bias}, {y}));
}

BufferId Builder::moe_glu(std::string name, BufferId gate, BufferId up, std::uint32_t act) {
  const BufferId y = activation(std::move(name), {rows(gate), width(gate)});
  Node n = node(Op::MOE_SWIGLU, {gate, up}, {y});
  ir::set_attr(n, "act", act);
  push(n);
  return y;
}

void Builder::moe_scale_into(BufferId y, BufferId ids, BufferId expert_scale) {
  push(node(Op::MOE_SCALE, {y, ids, expert_scale}, {y}));
}

BufferId Builder::moe_sum(std::string name, BufferId y, const Routing& routing, BufferId expert_scale) {
  const BufferId z = activation(std::move(name), {rows(y), parts(width(y), width(routing.ids))});
  push(node(Op::MOE_SUM, {y, routing.ids, routing.weights, expert_scale}, {z}));
  return z;
}

void Builder::shared_expert(BufferId x, BufferId gate_w, BufferId up_w, BufferId down_w, BufferId gate_inp,
                            BufferId hidden, std::uint32_t act) {
  Node n = node(Op::SHARED_EXPERT, {x, gate_w, up_w, down_w, gate_inp, hidden}, {hidden});
  ir::set_attr(n, "act", act);
  push(n);
}

BufferId Builder::state_runs() {
  return request("state_runs", DType::kU32, {options_.max_slots, kStateRunWords});
}

BufferId Builder::saved_inputs(std::string_view name, std::initializer_list<ir::Dim> dims) {
  return state(fmt::format("{}{}", kSavedInputs, at_layer(name)), DType::kF32, dims);
}

BufferId Builder::ssm_conv1d(std::string_view name, BufferId x, BufferId conv_w, BufferId bias, std::uint32_t act) {
  const std::uint32_t taps = width(conv_w) - 1, channels = width(x);
  const BufferId kept = state(at_layer(name), DType::kF32, {options_.state_entries, taps, channels});
  const BufferId saved = saved_inputs(name, {options_.max_slots, options_.state_guesses, channels});
  const BufferId y = activation(at_layer(name), {rows(x), channels});
  Node n = node(Op::SSM_CONV1D, {x, conv_w, bias, positions_, slots_, kept, state_runs(), saved}, {y, kept, saved});
  ir::set_attr(n, "width", width(conv_w));
  ir::set_attr(n, "taps", taps);
  ir::set_attr(n, "act", act);
  push(n);
  return y;
}

BufferId Builder::ssm_delta_net(std::string_view name, BufferId x, BufferId beta, BufferId alpha, BufferId a,
                                BufferId dt, const DeltaNet& shape) {
  const BufferId kept =
      state(at_layer(name), DType::kF32, {options_.state_entries, shape.n_v_heads, shape.k_dim, shape.v_dim});
  const BufferId saved =
      saved_inputs(name, {options_.max_slots, 2, options_.state_guesses, width(x) + 2 * shape.n_v_heads});
  const BufferId y = activation(at_layer(name), {rows(x), shape.n_v_heads * shape.v_dim});
  Node n =
      node(Op::SSM_DELTA_NET, {x, beta, alpha, a, dt, positions_, slots_, kept, state_runs(), saved}, {y, kept, saved});
  ir::set_attr(n, "n_k_heads", shape.n_k_heads);
  ir::set_attr(n, "n_v_heads", shape.n_v_heads);
  ir::set_attr(n, "k_dim", shape.k_dim);
  ir::set_attr(n, "v_dim", shape.v_dim);
  ir::set_attr(n, "tiled", std::uint32_t{shape.tiled});
  ir::set_attr(n, "eps", shape.eps);
  push(n);
  return y;
}

BufferId Builder::ssm_scan(std::string_view name, BufferId x, BufferId dt, const Scan& scan) {
  const BufferId kept =
      state(at_layer(name), DType::kF32, {options_.state_entries, scan.n_heads, scan.state_dim, scan.head_dim});
  const BufferId saved = saved_inputs(name, {options_.max_slots, 2, options_.state_guesses, width(x) + scan.n_heads});
  const BufferId y = activation(at_layer(name), {rows(x), scan.n_heads * scan.head_dim});
  Node n = node(Op::SSM_SCAN, {x, dt, scan.a, scan.dt_bias, scan.d, positions_, slots_, kept, state_runs(), saved},
                {y, kept, saved});
  ir::set_attr(n, "n_heads", scan.n_heads);
  ir::set_attr(n, "n_groups", scan.n_groups);
  ir::set_attr(n, "head_dim", scan.head_dim);
  ir::set_attr(n, "state_dim", scan.state_dim);
  push(n);
  return y;
}

BufferId Builder::ssm_gated_norm(std::string name, BufferId x, BufferId z, BufferId w, float eps, std::uint32_t group,
                                 bool gate_first) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::SSM_GATED_NORM, {x, z, w}, {y});
  ir::set_attr(n, "eps", eps);
  ir::set_attr(n, "group", group);
  ir::set_attr(n, "gate_first", std::uint32_t{gate_first});
  push(n);
  return y;
}

BufferId Builder::softcap(std::string name, BufferId x, float cap) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::SOFTCAP, {x}, {y});
  ir::set_attr(n, "cap", cap);
  push(n);
  return y;
}

void Builder::embedding_head(BufferId hidden, BufferId norm_w) {
  set_layer(-1);
  const auto d = width(hidden);
  const auto eps = static_cast<float>(config_.norm_eps);
  const BufferId output_rows = request("output_rows", DType::kI32, {ir::kOutputs});
  const BufferId embeddings = output("embeddings", DType::kF32, {ir::kOutputs, d});
  if (options_.pooling == Pooling::kMean) {
    const BufferId rows = norm_w == ir::kNoBuffer ? hidden : row_norm("output_norm", hidden, norm_w, eps);
    const BufferId sum = state("pool_sum", DType::kF32, {options_.state_entries, d});
    const BufferId mean = activation("pooled", {ir::kTokens, d});
    push(node(Op::POOL_MEAN, {rows, positions_, slots_, sum}, {mean, sum}));
    push(node(Op::GATHER_ROWS, {mean, output_rows}, {embeddings}));
    return;
  }
  if (norm_w == ir::kNoBuffer) return push(node(Op::GATHER_ROWS, {hidden, output_rows}, {embeddings}));
  const BufferId gathered = activation("output_hidden", {ir::kOutputs, d});
  push(node(Op::GATHER_ROWS, {hidden, output_rows}, {gathered}));
  row_norm_to(embeddings, gathered, norm_w, eps);
}

BufferId Builder::gather_output_rows(BufferId hidden) {
  set_layer(-1);
  const BufferId x = activation("output_hidden", {ir::kOutputs, width(hidden)});
  push(node(Op::GATHER_ROWS, {hidden, request("output_rows", DType::kI32, {ir::kOutputs})}, {x}));
  return x;
}

void Builder::head(BufferId hidden, BufferId norm_w, BufferId head_w, float logit_scale, float cap) {
  set_layer(-1);
  if (options_.gives_features) keep_input_of(config_.n_layers);
  const BufferId output_rows = request("output_rows", DType::kI32, {ir::kOutputs});
  const BufferId output_slots = request("output_slots", DType::kI32, {ir::kOutputs});
  const BufferId sampling = request("sampling", DType::kU32, {ir::kOutputs, kSampleParamWords});
  const BufferId history = request("history", DType::kI32, {options_.history_tokens});
  const BufferId bias = request("bias", DType::kU32, {options_.bias_entries, 2});
  const BufferId mask = request("mask", DType::kU32, {options_.mask_words});
  if (options_.gives_features && features_ == ir::kNoBuffer)
    row_norm_to(output("features", DType::kF32, {ir::kTokens, width(hidden)}), hidden, norm_w,
                static_cast<float>(config_.norm_eps));
  const BufferId gathered = activation("output_hidden", {ir::kOutputs, width(hidden)});
  push(node(Op::GATHER_ROWS, {hidden, output_rows}, {gathered}));
  const BufferId norm = row_norm("output_norm", gathered, norm_w, static_cast<float>(config_.norm_eps));
  const BufferId logits = output("logits", DType::kF32, {ir::kOutputs, rows(head_w)});
  push(node(Op::LM_HEAD, {norm, head_w}, {logits}));
  const auto in_place = [&](Op op, std::string_view attr, float value) {
    Node n = op == Op::SCALE ? node(op, {logits, ir::kNoBuffer}, {logits}) : node(op, {logits}, {logits});
    ir::set_attr(n, attr, value);
    push(n);
  };
  if (logit_scale != 1.0f) in_place(Op::SCALE, "scale", logit_scale);
  if (cap > 0.0f) in_place(Op::SOFTCAP, "cap", cap);
  const BufferId token = activation("next_token", {ir::kOutputs}, DType::kI32);
  push(node(Op::SAMPLE, {logits, sampling, history, bias, mask}, {token}));
  const BufferId ring = output("tokens", DType::kU32, {options_.ring_entries, 4});
  push(node(Op::STREAM_OUT, {token, output_slots, ring}, {ring}));
  if (options_.keeps_tokens) {
    Node store = node(Op::STORE_REQUEST_STATE, {slot_table(), output_slots, token}, {slot_table()});
    ir::set_attr(store, "field", kLastToken);
    push(store);
  }
  if (!options_.has_logprobs) return;
  const BufferId wanted = request("logprobs", DType::kI32, {ir::kOutputs, 2});
  const BufferId stats = output("logprobs", DType::kU32, {ir::kOutputs, kLogprobWords});
  push(node(Op::LOGPROBS, {logits, token, wanted}, {stats}));
}

BufferId Builder::slot_table() {
  return state(std::string(kSlotTable), DType::kU32, {options_.max_slots, kSlotFields});
}

}  // namespace zinc_rt::arch
