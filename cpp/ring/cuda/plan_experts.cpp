// The ops of experts: their choice, their products, the sum over a token's choices, and shared experts.
#include <algorithm>

#include "kernels/common/push.h"
#include "ring/cuda/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

// Symbols: d, e, type of the router, type of x.
Matrix router_of(const OpCall& c) {
  return {c.buffers[1], c.dtype(2), c.symbols[1], nullptr, at<float>(c, 2), c.symbols[1]};
}
// next: the first that reads the choices sorted by expert, or nothing. has_logits: the router's product is planned.
void choose_experts(Planner& p, const OpCall& c, const std::optional<ExpertProducts>& next, bool has_logits) {
  const std::uint32_t e = c.symbols[1], n_used = c.constants<push::MoeGateTopk>().n_used;
  // Of so many tokens one workgroup is faster than one a token and a launch that sorts.
  constexpr std::uint32_t kMostAtOnce = 32;
  const bool is_few = e <= 512 && n_used <= 32;
  const Sorting sorting = is_few && next && c.rows() <= kMostAtOnce ? plan_sorting(p, c, *next) : Sorting{};
  if (!has_logits) plan_linear(p, c, c.buffers[0], c.dtype(3), c.symbols[0], {router_of(c)});
  const std::string of_lanes = e <= 128 ? "_128" : "_512";
  if (sorting.columns != 0) {
    auto args = p.args(c, {e, sorting.columns});
    args.buffers[5] = sorting.at.items;
    args.buffers[6] = sorting.at.order;
    p.launch("moe_gate_topk", "moe_gate_topk_sorted" + of_lanes, 1, 1, 1, 32 * c.rows(),
             (2 * std::uint64_t{e} + 2 + c.rows() * n_used) * 4, args);
  } else if (is_few) {
    p.launch("moe_gate_topk", "moe_gate_topk" + of_lanes, c.rows(), 1, 1, 32, 0, p.args(c, {e}));
  } else {
    const std::uint64_t words = 2 * std::uint64_t{e} + n_used + 64;
    p.launch("moe_gate_topk", "moe_gate_topk", c.rows(), 1, 1, kThreads, words * 4, p.args(c, {e}));
  }
}
// The first products of experts that the first call has chosen.
std::optional<ExpertProducts> products_of_choices(std::span<const OpCall> calls) {
  for (const OpCall& c : calls.subspan(1)) {
    if (c.op == Op::MOE_GATE_TOPK || c.rows_symbol != calls[0].rows_symbol) break;
    auto products = expert_products(c);
    if (products && products->experts.ids == calls[0].buffers[3]) return products;
  }
  return std::nullopt;
}

void add_choices(Planner& p, const OpCall& c, const ChoiceSum& sum, std::uint32_t d) {
  auto args = p.args(c, {d, sum.k, sum.e});
  void* const buffers[] = {sum.y, sum.ids, sum.weights, sum.scale, sum.z, sum.hidden};
  std::ranges::copy(buffers, args.buffers);
  p.launch("moe_sum", "moe_sum", c.rows(), ceil_div(d, kThreads), 1, kThreads, 0, args);
}
// Symbols: d, k, e.
ChoiceSum sum_of(const OpCall& c) {
  return {c.buffers[0], c.buffers[1], c.buffers[2], c.buffers[3], c.buffers[4], nullptr, c.symbols[1], c.symbols[2]};
}
// All but the sum, which is left to do. Symbols: f, e, d, k, types of w and x, pitch.
ChoiceSum down(Planner& p, const OpCall& c, const float* floats) {
  const std::uint32_t d = c.symbols[2], k = c.symbols[3], e = c.symbols[1];
  auto* y = static_cast<float*>(p.scratch(std::uint64_t{c.rows()} * k * d * 4));
  plan_linear(p, c, c.buffers[0], c.dtype(5), c.symbols[0],
              {{c.buffers[1], c.dtype(4), d, nullptr, y, d, c.symbols[6]}},
              {.experts = {at<const std::int32_t>(c, 2), k, e, k}, .floats = floats});
  return {y, c.buffers[2], c.buffers[3], c.buffers[4], nullptr, c.buffers[5], k, e};
}
// Whether the choices of a token are added to its hidden row by what normalizes that for q, k and v.
bool can_add_choices(const Planner& planner, const OpCall& sum, const void* hidden, const OpCall& qkv) {
  return qkv.op == Op::RMS_NORM_FUSED_QKV && qkv.buffers[0] == hidden && sum.rows_symbol == qkv.rows_symbol &&
         sum.rows() > 1 && can_norm_sum(planner, qkv.symbols[0]);
}

// y = gate's product and up's through the activation, by down, of a shared expert. Symbols: d, f, types of gate, up and
// down.
void shared_down(Planner& p, const OpCall& c, float* gate, float* up, const Matrix& down) {
  const auto push = c.constants<push::SharedExpert>();
  const std::uint32_t f = c.symbols[1], n = c.rows();
  const DType type = push.quantize != 0 ? act_dtype(down.dtype) : DType::kF32;
  auto args = p.args(c, {f, static_cast<std::uint32_t>(type)});
  void* const buffers[] = {gate, up, gate, nullptr};
  std::ranges::copy(buffers, args.buffers);
  args.push[0] = push.act;
  if (type == DType::kF32) {
    p.launch("glu", "glu", n, ceil_div(f, 1024), 1, kThreads, 0, args);
    plan_linear(p, c, gate, type, f, {down});
    return;
  }
  args.buffers[3] = p.scratch(std::uint64_t{n} * row_bytes(type, f));
  plan_glu_quantize(p, c, f, args);
  plan_linear(p, c, args.buffers[3], type, f, {down});
}

}  // namespace

std::optional<ExpertProducts> expert_products(const OpCall& c) {
  if (c.op != Op::MOE_GATE_UP && c.op != Op::MOE_LINEAR) return std::nullopt;
  const bool is_pair = c.op == Op::MOE_GATE_UP;
  const std::size_t n = is_pair ? 2 : 1;
  const std::uint32_t e = c.symbols[1], f = c.symbols[2], k = c.symbols[3];
  ExpertProducts products{c.dtype(4 + n), c.symbols[0], {}, {}};
  for (std::size_t i = 0; i < n; ++i)
    products.matrices.push_back(
        {c.buffers[1 + i], c.dtype(4 + i), f, nullptr, at<float>(c, 2 + n + i), f, c.symbols[5 + n + i]});
  products.experts = {at<const std::int32_t>(c, 1 + n), k, e, is_pair ? 1 : c.constants<push::MoeLinear>().rows};
  return products;
}

void plan_experts_op(Planner& p, const OpCall& c, const GluOf* glu) {
  const auto products = expert_products(c);
  plan_linear(p, c, c.buffers[0], products->x_dtype, products->k, products->matrices,
              {.experts = products->experts, .glu = glu});
}

void plan_choices(Planner& p, std::span<const OpCall> calls) {
  choose_experts(p, calls[0], products_of_choices(calls), false);
}

std::size_t plan_normed_choices(Planner& p, std::span<const OpCall> calls) {
  const bool is_sum = calls[0].op == Op::LINEAR;
  const std::size_t n = is_sum ? 4 : 3;
  if (calls.size() < n) return 0;
  const OpCall &norm_call = calls[n - 3], &quantize = calls[n - 2], &gate = calls[n - 1];
  if (!is_row_norm(norm_call) || quantize.op != Op::QUANTIZE || gate.op != Op::MOE_GATE_TOPK) return 0;
  if (std::ranges::any_of(calls.first(n), [](const OpCall& c) { return c.rows_symbol != 1; })) return 0;
  const RowNorm norm = row_norm_of(norm_call);
  // What is added, the product before must be able to add itself.
  if (norm.added != (is_sum ? calls[0].buffers[3] : nullptr) || norm.added == norm.x) return 0;
  if (quantize.buffers[0] != norm.y || gate.buffers[0] != norm.y || gate.dtype(3) != DType::kF32) return 0;
  // Workgroups do not wait for each other.
  const std::uint32_t d = norm_call.symbols[0];
  const std::uint64_t bytes = std::uint64_t{d} * 4;
  const DType type = quantize.dtype(1);
  const Matrix router = router_of(gate);
  if (!are_apart(norm.x, bytes, norm.y, bytes) || !are_apart(norm.x, bytes, quantize.buffers[1], row_bytes(type, d)) ||
      !are_apart(norm.x, bytes, router.y, std::uint64_t{router.rows} * 4) || !can_norm_floats(p, d, router))
    return 0;
  if (is_sum) plan_linear_op(p, calls[0], {.residual = static_cast<float*>(norm.x)});
  NormedRows rows{norm.y};
  rows.of(type) = quantize.buffers[1];
  plan_normed_floats(p, gate, norm.x, d, router, {static_cast<const float*>(norm.w), norm.eps}, rows);
  choose_experts(p, gate, products_of_choices(calls.subspan(n - 1)), true);
  return n;
}

void plan_moe_sum(Planner& p, const OpCall& c) {
  add_choices(p, c, sum_of(c), c.symbols[0]);
}

void plan_moe_down_acc(Planner& p, const OpCall& c) {
  add_choices(p, c, down(p, c, nullptr), c.symbols[2]);
}

std::size_t plan_choice_sum(Planner& planner, std::span<const OpCall> calls, const float* floats) {
  const OpCall& first = calls[0];
  const bool is_down = first.op == Op::MOE_DOWN_ACC;
  if (!is_down && (first.op != Op::MOE_SUM || !is_sum_of(first, calls[1]))) return 0;
  const std::size_t n = is_down ? 1 : 2;
  ChoiceSum sum = is_down ? down(planner, first, floats) : sum_of(first);
  if (!is_down) sum.hidden = calls[1].buffers[0];
  if (calls.size() > n && can_add_choices(planner, first, sum.hidden, calls[n])) {
    plan_qkv(planner, calls[n], &sum);
    return n + 1;
  }
  add_choices(planner, first, sum, first.symbols[is_down ? 2 : 0]);
  return n;
}

void plan_shared_expert(Planner& p, const OpCall& c) {
  const bool is_quantized = c.constants<push::SharedExpert>().quantize != 0;
  const std::uint32_t d = c.symbols[0], f = c.symbols[1], n = c.rows();
  const auto floats = [&](std::uint64_t width) { return static_cast<float*>(p.scratch(n * width * 4)); };
  float *gate = floats(f), *up = floats(f), *y = floats(d);
  const Matrix of_gate{c.buffers[1], c.dtype(2), f, nullptr, gate, f},
      of_up{c.buffers[2], c.dtype(3), f, nullptr, up, f}, of_down{c.buffers[3], c.dtype(4), d, nullptr, y, d};
  const auto type_of = [&](const Matrix& m) { return is_quantized ? act_dtype(m.dtype) : DType::kF32; };
  const auto project = [&](const std::vector<Matrix>& matrices, const GluOf* glu = nullptr) {  // x in one type
    const DType type = type_of(matrices[0]);
    const void* x = type == DType::kF32 ? c.buffers[0] : plan_quantize(p, c, c.buffers[0], type, d);
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
  auto args = p.args(c, {d});
  args.buffers[1] = c.buffers[4];
  args.buffers[2] = y;
  args.buffers[3] = c.buffers[5];
  p.launch("shared_expert", "shared_expert", n, 1, 1, kThreads, ceil_div(d, 256) * 4, args);
}

}  // namespace zinc_rt::ring
