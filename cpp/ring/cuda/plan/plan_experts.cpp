// The ops of experts: their choice, their products, the sum over a token's choices, and shared experts.
#include <algorithm>

#include "kernels/common/push.h"
#include "ring/cuda/plan/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

namespace binding = cuda::binding;
namespace symbol = cuda::symbol;
using Gate = operand::MoeGateTopk;
constexpr auto kGateSymbols = op_symbols::kMoeGateTopk;

Matrix router_of(const OpCall& c) {
  const std::uint32_t e = c.symbols[kGateSymbols["dim:e"]];
  return {c.buffers[Gate::gate_w], c.dtype(kGateSymbols["dtype:gate_w"]), e, {}, c.buffers[Gate::logits], e};
}
// next: the first packet that reads the choices sorted by expert, or nothing. has_logits: the router's product is
// planned already.
void choose_experts(Planner& p, const OpCall& c, const std::optional<ExpertProducts>& next, bool has_logits) {
  const std::uint32_t e = c.symbols[kGateSymbols["dim:e"]], n_used = c.constants<push::MoeGateTopk>().n_used;
  const bool is_few = e <= 512 && n_used <= 32;
  const Sorting sorting =
      is_few && next && c.rows() <= p.device().experts.most_sorted_at_once ? plan_sorting(p, c, *next) : Sorting{};
  if (!has_logits)
    plan_linear(p, c, c.buffers[Gate::x], c.dtype(kGateSymbols["dtype:x"]), c.symbols[kGateSymbols["dim:d"]],
                {router_of(c)});
  auto args = p.args<symbol::GateTopk>(c, {.rows = c.rows_symbol, .e = e, .columns = sorting.columns});
  const std::string of_lanes = e <= 128 ? "_128" : "_512";
  if (sorting.columns != 0) {
    args.buffers[binding::GateTopk::items] = sorting.at.items;
    args.buffers[binding::GateTopk::order] = sorting.at.order;
    p.launch("moe_gate_topk", "moe_gate_topk_sorted" + of_lanes, 1, 1, 1, 32 * c.rows(),
             (2 * std::uint64_t{e} + 2 + c.rows() * n_used) * 4, args);
  } else if (is_few) {
    p.launch("moe_gate_topk", "moe_gate_topk" + of_lanes, c.rows(), 1, 1, 32, 0, args);
  } else {
    const std::uint64_t words = 2 * std::uint64_t{e} + n_used + 64;
    p.launch("moe_gate_topk", "moe_gate_topk", c.rows(), 1, 1, kThreads, words * 4, args);
  }
}
// The first products of experts behind calls[0] that read its choices.
std::optional<ExpertProducts> products_of_choices(std::span<const OpCall> calls) {
  for (const OpCall& c : calls.subspan(1)) {
    if (c.op == Op::MOE_GATE_TOPK || c.rows_symbol != calls[0].rows_symbol) break;
    auto products = expert_products(c);
    if (products && products->experts.ids == calls[0].buffers[Gate::ids]) return products;
  }
  return std::nullopt;
}

void add_choices(Planner& p, const OpCall& c, const ChoiceSum& sum, std::uint32_t d) {
  auto args = p.args<symbol::ChoiceSum>(c, {.rows = c.rows_symbol, .d = d, .k = sum.k, .e = sum.e});
  args.set_buffers<binding::ChoiceSum>({.choices_y = sum.y,
                                        .ids = sum.ids,
                                        .weights = sum.weights,
                                        .expert_scale = sum.scale,
                                        .z = sum.z,
                                        .hidden = sum.hidden});
  p.launch("moe_sum", "moe_sum", c.rows(), ceil_div(d, kThreads), 1, kThreads, 0, args);
}
ChoiceSum sum_of(const OpCall& c) {
  constexpr auto kSymbols = op_symbols::kMoeSum;
  const auto o = c.operands<operand::MoeSum>();
  return {.y = o.y,
          .ids = o.ids,
          .weights = o.weights,
          .scale = o.expert_scale,
          .z = o.z,
          .k = c.symbols[kSymbols["dim:k"]],
          .e = c.symbols[kSymbols["dim:e"]]};
}
// The product of MOE_DOWN_ACC. The sum over its rows is returned, to be planned.
ChoiceSum down(Planner& p, const OpCall& c, Place floats) {
  constexpr auto kSymbols = op_symbols::kMoeDownAcc;
  const auto o = c.operands<operand::MoeDownAcc>();
  const std::uint32_t d = c.symbols[kSymbols["dim:d"]], k = c.symbols[kSymbols["dim:k"]],
                      e = c.symbols[kSymbols["dim:e"]];
  const Place y = p.scratch(std::uint64_t{c.rows()} * k * d * 4);
  plan_linear(p, c, o.x, c.dtype(kSymbols["dtype:x"]), c.symbols[kSymbols["dim:f"]],
              {{o.down_w, c.dtype(kSymbols["dtype:down_w"]), d, {}, y, d, c.symbols[kSymbols["pitch:down_w"]]}},
              {.experts = {o.ids, k, e, k}, .floats = floats});
  return {.y = y, .ids = o.ids, .weights = o.weights, .scale = o.expert_scale, .hidden = o.hidden, .k = k, .e = e};
}
// Whether the norm in front of q, k and v can add the choices of a token to its hidden row.
bool can_add_choices(const Planner& planner, const OpCall& qkv) {
  return qkv.rows() > 1 && can_norm_sum(planner, qkv.symbols[op_symbols::kRmsNormFusedQkv["dim:d"]]);
}

// y = gate's product and up's through the activation, by down, of a shared expert.
void shared_down(Planner& p, const OpCall& c, Place gate, Place up, const Matrix& down) {
  const auto push = c.constants<push::SharedExpert>();
  const std::uint32_t f = c.symbols[op_symbols::kSharedExpert["dim:f"]], n = c.rows();
  const DType type = push.quantize != 0 ? act_dtype(down.dtype) : DType::kF32;
  if (type == DType::kF32) {
    auto args = p.args<symbol::Row>(c, {.rows = c.rows_symbol, .width = f});
    args.set_buffers<operand::Glu>({.gate = gate, .up = up, .y = gate});
    args.set_constants(push::Glu{push.act});
    p.launch("glu", "glu", n, ceil_div(f, 1024), 1, kThreads, 0, args);
    plan_linear(p, c, gate, type, f, {down});
    return;
  }
  const Place quantized = p.scratch(std::uint64_t{n} * row_bytes(type, f));
  plan_glu_quantize(p, c, {gate, up, gate, push.act, f, quantized, type});
  plan_linear(p, c, quantized, type, f, {down});
}

}  // namespace

std::optional<ExpertProducts> expert_products(const OpCall& c) {
  if (c.op != Op::MOE_GATE_UP && c.op != Op::MOE_LINEAR) return std::nullopt;
  constexpr auto kPair = op_symbols::kMoeGateUp;
  constexpr auto kOne = op_symbols::kMoeLinear;
  static_assert(kPair["dim:d"] == kOne["dim:d"] && kPair["dim:e"] == kOne["dim:e"] && kPair["dim:f"] == kOne["dim:f"] &&
                kPair["dim:k"] == kOne["dim:k"] &&
                operand::is_same_place(operand::MoeGateUp::x, operand::MoeLinear::x));
  const std::uint32_t d = c.symbols[kOne["dim:d"]], e = c.symbols[kOne["dim:e"]], f = c.symbols[kOne["dim:f"]],
                      k = c.symbols[kOne["dim:k"]];
  const auto matrix = [&](Place w, DType dtype, Place y, std::uint64_t pitch) {
    return Matrix{w, dtype, f, {}, y, f, pitch};
  };
  if (c.op == Op::MOE_LINEAR) {
    const auto o = c.operands<operand::MoeLinear>();
    return ExpertProducts{c.dtype(kOne["dtype:x"]),
                          d,
                          {matrix(o.w, c.dtype(kOne["dtype:w"]), o.y, c.symbols[kOne["pitch:w"]])},
                          {o.ids, k, e, c.constants<push::MoeLinear>().rows}};
  }
  const auto o = c.operands<operand::MoeGateUp>();
  return ExpertProducts{c.dtype(kPair["dtype:x"]),
                        d,
                        {matrix(o.gate_w, c.dtype(kPair["dtype:gate_w"]), o.gate, c.symbols[kPair["pitch:gate_w"]]),
                         matrix(o.up_w, c.dtype(kPair["dtype:up_w"]), o.up, c.symbols[kPair["pitch:up_w"]])},
                        {o.ids, k, e, 1}};
}

void plan_experts_op(Planner& p, const OpCall& c, const GluOf* glu) {
  const auto products = expert_products(c);
  plan_linear(p, c, c.buffers[operand::MoeLinear::x], products->x_dtype, products->k, products->matrices,
              {.experts = products->experts, .glu = glu});
}

void plan_choices(Planner& p, std::span<const OpCall> calls) {
  choose_experts(p, calls[0], products_of_choices(calls), false);
}

std::size_t plan_normed_choices(Planner& p, std::span<const OpCall> calls, std::size_t n) {
  if (std::ranges::any_of(calls.first(n), [](const OpCall& c) { return c.rows_symbol != 1; })) return 0;
  const OpCall &norm_call = calls[n - 3], &quantize = calls[n - 2], &gate = calls[n - 1];
  const std::uint32_t d = norm_call.symbols[op_symbols::kNorm["dim:d"]];
  const Matrix router = router_of(gate);
  if (!is_row_norm(norm_call) || gate.dtype(kGateSymbols["dtype:x"]) != DType::kF32 || !can_norm_floats(p, d, router))
    return 0;
  const RowNorm norm = row_norm_of(norm_call);
  if (n > 3) plan_linear_op(p, calls[0], {.residual = norm.x});  // which adds to the row itself
  NormedRows rows{norm.y};
  rows.of(quantize.dtype(op_symbols::kQuantize["dtype:y"])) = quantize.buffers[operand::Quantize::y];
  plan_normed_floats(p, gate, norm.x, d, router, {norm.w, norm.eps}, rows);
  choose_experts(p, gate, products_of_choices(calls.subspan(n - 1)), true);
  return n;
}

void plan_moe_sum(Planner& p, const OpCall& c) {
  add_choices(p, c, sum_of(c), c.symbols[op_symbols::kMoeSum["dim:d"]]);
}

void plan_moe_down_acc(Planner& p, const OpCall& c) {
  add_choices(p, c, down(p, c, {}), c.symbols[op_symbols::kMoeDownAcc["dim:d"]]);
}

std::size_t plan_choice_sum(Planner& planner, std::span<const OpCall> calls, Place floats) {
  const OpCall& first = calls[0];
  const bool is_down = first.op == Op::MOE_DOWN_ACC;
  const std::size_t n = is_down ? 1 : 2;
  ChoiceSum sum = is_down ? down(planner, first, floats) : sum_of(first);
  if (!is_down) sum.hidden = calls[1].buffers[operand::Add::x];
  if (calls.size() > n && can_add_choices(planner, calls[n])) {
    plan_qkv(planner, calls[n], &sum);
    return n + 1;
  }
  const std::size_t d = is_down ? op_symbols::kMoeDownAcc["dim:d"] : op_symbols::kMoeSum["dim:d"];
  add_choices(planner, first, sum, first.symbols[d]);
  return n;
}

void plan_shared_expert(Planner& p, const OpCall& c) {
  const bool is_quantized = c.constants<push::SharedExpert>().quantize != 0;
  constexpr auto kSymbols = op_symbols::kSharedExpert;
  const auto o = c.operands<operand::SharedExpert>();
  const std::uint32_t d = c.symbols[kSymbols["dim:d"]], f = c.symbols[kSymbols["dim:f"]], n = c.rows();
  const auto floats = [&](std::uint64_t width) { return p.scratch(n * width * 4); };
  const Place gate = floats(f), up = floats(f), y = floats(d);
  const Matrix of_gate{o.gate_w, c.dtype(kSymbols["dtype:gate_w"]), f, {}, gate, f},
      of_up{o.up_w, c.dtype(kSymbols["dtype:up_w"]), f, {}, up, f},
      of_down{o.down_w, c.dtype(kSymbols["dtype:down_w"]), d, {}, y, d};
  const auto type_of = [&](const Matrix& m) { return is_quantized ? act_dtype(m.dtype) : DType::kF32; };
  const auto project = [&](const std::vector<Matrix>& matrices, const GluOf* glu = nullptr) {  // x in one type
    const DType type = type_of(matrices[0]);
    const Place x = type == DType::kF32 ? o.x : plan_quantize(p, c, o.x, type, d);
    plan_linear(p, c, x, type, d, matrices, {.glu = glu});
  };
  if (const GluOf glu{gate, c.constants<push::SharedExpert>().act}; can_glu(p, c, type_of(of_gate), {of_gate, of_up})) {
    project({of_gate, of_up}, &glu);
    if (const DType type = type_of(of_down); type == DType::kF32)
      plan_linear(p, c, gate, type, f, {of_down});
    else
      plan_linear(p, c, p.scratch(row_bytes(type, f)), type, f, {of_down}, {.floats = gate});
  } else {
    if (type_of(of_gate) == type_of(of_up)) {
      project({of_gate, of_up});
    } else {
      project({of_gate});
      project({of_up});
    }
    shared_down(p, c, gate, up, of_down);
  }
  auto args = p.args<symbol::Row>(c, {.rows = c.rows_symbol, .width = d});
  args.set_buffers<binding::SharedExpert>({.x = o.x, .gate_inp = o.gate_inp, .y = y, .hidden = o.hidden});
  p.launch("shared_expert", "shared_expert", n, 1, 1, kThreads, ceil_div(d, 256) * 4, args);
}

}  // namespace zinc_rt::ring
