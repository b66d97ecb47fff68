// The ops of experts: the choice, the products, the sum over a token's choices, and shared experts.
#include <algorithm>

#include "ring/cuda/plan/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

namespace binding = cuda::binding;
namespace symbol = cuda::symbol;

// Plans the router. next: the first packet that reads the choices sorted by expert, if any. has_logits: the product
// that computes the logits is already planned.
void choose_experts(Planner& p, const OpCall& c, const std::optional<Products>& next, bool has_logits) {
  const auto push = c.constants<push::MoeGateTopk>();
  const std::uint32_t e = c.symbols<op_symbol::GateTopk>().e, n_used = push.n_used;
  const bool is_scored =
                 push.gating != push::kSoftmax || push.groups > 1 || c.buffers[operand::MoeGateTopk::choice_bias],
             is_few = e <= 512 && n_used <= 32 && !is_scored;
  const Sorting sorting =
      is_few && next && c.rows() <= p.device().experts.most_sorted_at_once ? plan_sorting(p, c, *next) : Sorting{};
  if (!has_logits) plan_linear(p, c, gpu::router_products(c));
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
    const std::uint64_t words = 2 * std::uint64_t{e} + n_used + 64 + (is_scored ? 2 * std::uint64_t{push.groups} : 0);
    p.launch("moe_gate_topk", is_scored ? "moe_gate_topk_scored" : "moe_gate_topk", c.rows(), 1, 1, kThreads, words * 4,
             args);
  }
}
// Returns the first products of experts after calls[0] that read its choices.
std::optional<Products> products_of_choices(std::span<const OpCall> calls) {
  for (const OpCall& c : calls.subspan(1)) {
    if (c.op == Op::MOE_GATE_TOPK || c.rows_symbol != calls[0].rows_symbol) break;
    auto products = expert_products(c);
    if (products && products->experts.ids == calls[0].buffers[operand::MoeGateTopk::ids]) return products;
  }
  return std::nullopt;
}

// Plans the kernel moe_sum: the sum over each token's choices, without a norm after it.
void add_choices(Planner& p, const OpCall& c, const ChoiceSum& sum) {
  auto args = p.args<symbol::ChoiceSum>(c, {.rows = c.rows_symbol, .d = sum.d, .k = sum.k, .e = sum.e});
  args.set_buffers<binding::ChoiceSum>({.choices_y = sum.y,
                                        .ids = sum.ids,
                                        .weights = sum.weights,
                                        .expert_scale = sum.scale,
                                        .z = sum.z,
                                        .hidden = sum.hidden});
  p.launch("moe_sum", "moe_sum", c.rows(), ceil_div(sum.d, kThreads), 1, kThreads, 0, args);
}
// Plans the product of MOE_DOWN_ACC and returns the sum over its rows. The caller plans the sum.
ChoiceSum down(Planner& p, const OpCall& c, Place floats) {
  const auto s = c.symbols<op_symbol::MoeDownAcc>();
  const Place y = p.scratch(std::uint64_t{c.rows()} * s.k * s.d * 4);
  plan_linear(p, c, gpu::down_products(c, y), {.floats = floats});
  return gpu::choice_sum_of_down(c, y);
}
// Whether the launch of the norm before q, k and v can also add the result of a token's experts to its hidden row.
bool can_add_choices(const Planner& planner, const OpCall& qkv) {
  return qkv.rows() > 1 && can_norm_sum(planner, qkv.symbols<op_symbol::Qkv>().d);
}

// Plans the activation and the down product of a shared expert, whose gate and up products are planned already.
void shared_down(Planner& p, const OpCall& c, const gpu::SharedExpert<Place>& expert) {
  const std::uint32_t f = expert.f, n = c.rows();
  const Place gate = expert.gate.y, up = expert.up.y;
  const DType type = expert.type_of(expert.down);
  if (type == DType::kF32) {
    auto args = p.args<symbol::Row>(c, {.rows = c.rows_symbol, .width = f});
    args.set_buffers<operand::Glu>({.gate = gate, .up = up, .y = gate});
    args.set_constants(push::Glu{expert.act});
    p.launch("glu", "glu", n, ceil_div(f, 1024), 1, kThreads, 0, args);
    plan_linear(p, c, {gate, type, f, {expert.down}});
    return;
  }
  const Place quantized = p.scratch(std::uint64_t{n} * row_bytes(type, f));
  plan_glu_quantize(p, c, {gate, up, gate, expert.act}, {gate, quantized, type, f});
  plan_linear(p, c, {quantized, type, f, {expert.down}});
}

}  // namespace

std::optional<Products> expert_products(const OpCall& c) {
  if (c.op == Op::MOE_GATE_UP) return gpu::gate_up_products(c);
  if (c.op == Op::MOE_LINEAR) return gpu::moe_linear_products(c);
  return std::nullopt;
}

void plan_experts_op(Planner& p, const OpCall& c, const GluOf* glu) {
  plan_linear(p, c, *expert_products(c), {.glu = glu});
}

void plan_choices(Planner& p, std::span<const OpCall> calls) {
  choose_experts(p, calls[0], products_of_choices(calls), false);
}

std::size_t plan_normed_choices(Planner& p, std::span<const OpCall> calls, std::size_t n) {
  if (std::ranges::any_of(calls.first(n), [](const OpCall& c) { return c.rows_symbol != 1; })) return 0;
  const OpCall &norm_call = calls[n - 3], &gate = calls[n - 1];
  const auto quantized = gpu::quantized(calls[n - 2]);
  const auto router = gpu::router_products(gate);
  const Matrix& matrix = router.matrices[0];
  const auto norm = gpu::row_norm(norm_call);
  if (!is_row_norm(norm_call) || router.x_dtype != DType::kF32 || matrix.bias || !can_norm_floats(p, norm.d, matrix))
    return 0;
  if (n > 3) plan_linear_op(p, calls[0], {.residual = norm.x});  // the product adds to the row itself
  NormedRows rows{norm.y};
  rows.of(quantized.type) = quantized.y;
  plan_normed_floats(p, gate, norm.x, norm.d, matrix, {norm.w, norm.eps}, rows);
  choose_experts(p, gate, products_of_choices(calls.subspan(n - 1)), true);
  return n;
}

void plan_moe_sum(Planner& p, const OpCall& c) {
  add_choices(p, c, gpu::choice_sum(c));
}

void plan_moe_down_acc(Planner& p, const OpCall& c) {
  add_choices(p, c, down(p, c, {}));
}

std::size_t plan_choice_sum(Planner& planner, std::span<const OpCall> calls, Place floats) {
  const OpCall& first = calls[0];
  const bool is_down = first.op == Op::MOE_DOWN_ACC;
  const std::size_t n = is_down ? 1 : 2;
  ChoiceSum sum = is_down ? down(planner, first, floats) : gpu::choice_sum(first);
  if (!is_down) sum.hidden = calls[1].buffers[operand::Add::x];
  if (calls.size() > n && can_add_choices(planner, calls[n])) {
    plan_qkv(planner, calls[n], &sum);
    return n + 1;
  }
  add_choices(planner, first, sum);
  return n;
}

void plan_shared_expert(Planner& p, const OpCall& c) {
  const auto s = c.symbols<op_symbol::SharedExpert>();
  const std::uint32_t d = s.d, f = s.f, n = c.rows();
  const auto floats = [&](std::uint64_t width) { return p.scratch(n * width * 4); };
  const Place gate = floats(f), up = floats(f), y = floats(d);
  const auto expert = gpu::shared_expert(c, gate, up, y);
  const auto project = [&](const std::vector<Matrix>& matrices, const GluOf* glu = nullptr) {  // x has one type
    const DType type = expert.type_of(matrices[0]);
    const Place x = type == DType::kF32 ? expert.x : plan_quantize(p, c, expert.x, type, d);
    plan_linear(p, c, {x, type, d, matrices}, {.glu = glu});
  };
  const GluOf glu{gate, expert.act};
  if (can_glu(p, c, expert.type_of(expert.gate), {expert.gate, expert.up})) {
    project({expert.gate, expert.up}, &glu);
    if (const DType type = expert.type_of(expert.down); type == DType::kF32)
      plan_linear(p, c, {gate, type, f, {expert.down}});
    else
      plan_linear(p, c, {p.scratch(row_bytes(type, f)), type, f, {expert.down}}, {.floats = gate});
  } else {
    if (expert.type_of(expert.gate) == expert.type_of(expert.up)) {
      project({expert.gate, expert.up});
    } else {
      project({expert.gate});
      project({expert.up});
    }
    shared_down(p, c, expert);
  }
  auto args = p.args<symbol::Row>(c, {.rows = c.rows_symbol, .width = d});
  args.set_buffers<binding::SharedExpert>(
      {.x = expert.x, .gate_inp = expert.gate_inp, .y = y, .hidden = expert.hidden});
  p.launch("shared_expert", "shared_expert", n, 1, 1, kThreads, ceil_div(d, 256) * 4, args);
}

}  // namespace zinc_rt::ring
