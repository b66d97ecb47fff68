// The ops of experts: their choice, their products, the sum over a token's choices, and shared experts.
#include "kernels/common/push.h"
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

constexpr std::uint32_t kThreads = 256;

// The sum over the experts that each token has chosen: to z, and to be added to hidden rows; 0: not so.
struct ChoiceSum {
  std::uint64_t y, ids, weights, scale, z, hidden;
  std::uint32_t n, d, k, e;
};
void choice_sum(AmdPlanner& p, const ChoiceSum& sum) {
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::ChoiceSum>({.y = sum.y,
                                              .ids = sum.ids,
                                              .weights = sum.weights,
                                              .expert_scale = sum.scale,
                                              .z = sum.z,
                                              .hidden = sum.hidden});
  args.symbols[0] = sum.d, args.symbols[1] = sum.k, args.symbols[2] = sum.e;
  p.launch("choice_sum", kThreads, sum.n, ceil_div(sum.d, kThreads), 1, args);
}
ChoiceSum sum_of(const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kMoeSum;
  const auto o = c.operands<operand::MoeSum>();
  return {o.y,
          o.ids,
          o.weights,
          o.expert_scale,
          o.z,
          0,
          c.rows(),
          c.dim(kSymbols["dim:d"]),
          c.dim(kSymbols["dim:k"]),
          c.dim(kSymbols["dim:e"])};
}

}  // namespace

void plan_gate_topk(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kGateTopk;
  const auto o = c.operands<operand::MoeGateTopk>();
  const std::uint32_t e = c.dim(kSymbols["dim:e"]);
  plan_products(p, {o.x, c.dtype(kSymbols["dtype:x"]), c.rows(), c.dim(kSymbols["dim:d"])},
                {{o.gate_w, c.dtype(kSymbols["dtype:gate_w"]), e, 0, o.logits}});
  p.barrier();
  p.launch("moe_gate_topk", 32, c.rows(), 1, 1, c.args);
}

void plan_moe_gate_up(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kMoeGateUp;
  const auto o = c.operands<operand::MoeGateUp>();
  const std::uint32_t f = c.dim(kSymbols["dim:f"]);
  plan_products(p, {o.x, c.dtype(kSymbols["dtype:x"]), c.rows(), c.dim(kSymbols["dim:d"])},
                {{o.gate_w, c.dtype(kSymbols["dtype:gate_w"]), f, 0, o.gate, c.dim(kSymbols["pitch:gate_w"])},
                 {o.up_w, c.dtype(kSymbols["dtype:up_w"]), f, 0, o.up, c.dim(kSymbols["pitch:up_w"])}},
                {o.ids, c.dim(kSymbols["dim:k"]), c.dim(kSymbols["dim:e"]), 1});
}

void plan_moe_linear(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kMoeLinear;
  const auto o = c.operands<operand::MoeLinear>();
  plan_products(p, {o.x, c.dtype(kSymbols["dtype:x"]), c.rows(), c.dim(kSymbols["dim:d"])},
                {{o.w, c.dtype(kSymbols["dtype:w"]), c.dim(kSymbols["dim:f"]), 0, o.y, c.dim(kSymbols["pitch:w"])}},
                {o.ids, c.dim(kSymbols["dim:k"]), c.dim(kSymbols["dim:e"]), c.constants<push::MoeLinear>().rows});
}

void plan_moe_sum(AmdPlanner& p, const AmdCall& c) {
  choice_sum(p, sum_of(c));
}

std::size_t plan_moe_sum_add(AmdPlanner& p, std::span<const AmdCall> calls, std::size_t) {
  ChoiceSum sum = sum_of(calls[0]);
  sum.hidden = calls[1].buffer(operand::Add::x);
  choice_sum(p, sum);
  return 2;
}

void plan_moe_down_acc(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kMoeDownAcc;
  const auto o = c.operands<operand::MoeDownAcc>();
  const std::uint32_t d = c.dim(kSymbols["dim:d"]), k = c.dim(kSymbols["dim:k"]), e = c.dim(kSymbols["dim:e"]);
  const std::uint64_t y = p.scratch(std::uint64_t{c.rows()} * k * d * 4);
  plan_products(p, {o.x, c.dtype(kSymbols["dtype:x"]), c.rows(), c.dim(kSymbols["dim:f"])},
                {{o.down_w, c.dtype(kSymbols["dtype:down_w"]), d, 0, y, c.dim(kSymbols["pitch:down_w"])}},
                {o.ids, k, e, k});
  p.barrier();
  choice_sum(p, {y, o.ids, o.weights, o.expert_scale, 0, o.hidden, c.rows(), d, k, e});
}

void plan_shared_expert(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kSharedExpert;
  const auto o = c.operands<operand::SharedExpert>();
  const auto push = c.constants<push::SharedExpert>();
  const std::uint32_t d = c.dim(kSymbols["dim:d"]), f = c.dim(kSymbols["dim:f"]), n = c.rows();
  const auto floats = [&](std::uint64_t width) { return p.scratch(n * width * 4); };
  const std::uint64_t gate = floats(f), up = floats(f), y = floats(d);
  const AmdMatrix of_gate{o.gate_w, c.dtype(kSymbols["dtype:gate_w"]), f, 0, gate},
      of_up{o.up_w, c.dtype(kSymbols["dtype:up_w"]), f, 0, up},
      of_down{o.down_w, c.dtype(kSymbols["dtype:down_w"]), d, 0, y};
  const auto type_of = [&](const AmdMatrix& m) { return push.quantize != 0 ? act_dtype(m.dtype) : DType::kF32; };
  const auto rows_of = [&](DType type, std::uint32_t k) {
    return AmdRows{p.scratch(n * row_bytes(type, k)), type, n, k};
  };
  std::vector<std::pair<AmdRows, std::vector<AmdMatrix>>> products;  // by the type of x
  for (const AmdMatrix& m : {of_gate, of_up}) {
    const DType type = type_of(m);
    if (!products.empty() && products.back().first.type == type) {
      products.back().second.push_back(m);
      continue;
    }
    AmdRows x{o.x, type, n, d};
    if (type != DType::kF32) plan_quantized_rows(p, x = rows_of(type, d), o.x);
    products.push_back({x, {m}});
  }
  p.barrier();
  for (const auto& [x, matrices] : products) plan_products(p, x, matrices);
  p.barrier();
  AmdRows x{gate, type_of(of_down), n, f};
  if (x.type == DType::kF32) {
    rdna::OpArgs args{};
    args.set_buffers<operand::Glu>({.gate = gate, .up = up, .y = gate});
    args.symbols[0] = f;
    args.set_constants(push::Glu{push.act});
    p.launch("glu", kThreads, n, 1, 1, args);
  } else {
    plan_glu_quantize(p, x = rows_of(x.type, f), {gate, up, 0, push.act});
  }
  p.barrier();
  plan_products(p, x, {of_down});
  p.barrier();
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::SharedExpert>({.x = o.x, .gate_inp = o.gate_inp, .y = y, .hidden = o.hidden});
  args.symbols[0] = d;
  p.launch("shared_expert", kThreads, n, 1, 1, args);
}

}  // namespace zinc_rt::ring
