// Plans the ops of experts: the choice, the products, the sum over a token's choices, and shared experts.
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

constexpr std::uint32_t kExpertThreads = 256;

using ChoiceSum = gpu::ChoiceSum<std::uint64_t>;
void choice_sum(AmdPlanner& p, std::uint32_t n, const ChoiceSum& sum) {
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::ChoiceSum>({.y = sum.y,
                                              .ids = sum.ids,
                                              .weights = sum.weights,
                                              .expert_scale = sum.scale,
                                              .z = sum.z,
                                              .hidden = sum.hidden});
  args.set_symbols<rdna::symbol::ChoiceSum>({.d = sum.d, .k = sum.k, .e = sum.e});
  p.launch("choice_sum", kExpertThreads, n, ceil_div(sum.d, kExpertThreads), 1, args);
}

}  // namespace

void plan_gate_topk(AmdPlanner& p, const AmdCall& c) {
  plan_products(p, c.rows(), gpu::router_products(c));
  p.barrier();
  p.launch("moe_gate_topk", 32, c.rows(), 1, 1, p.args(c));
}

void plan_moe_gate_up(AmdPlanner& p, const AmdCall& c) {
  plan_products(p, c.rows(), gpu::gate_up_products(c));
}

void plan_moe_linear(AmdPlanner& p, const AmdCall& c) {
  plan_products(p, c.rows(), gpu::moe_linear_products(c));
}

void plan_moe_sum(AmdPlanner& p, const AmdCall& c) {
  choice_sum(p, c.rows(), gpu::choice_sum(c));
}

std::size_t plan_moe_sum_add(AmdPlanner& p, std::span<const AmdCall> calls, std::size_t) {
  ChoiceSum sum = gpu::choice_sum(calls[0]);
  sum.hidden = calls[1].buffers[operand::Add::x];
  choice_sum(p, calls[0].rows(), sum);
  return 2;
}

void plan_moe_down_acc(AmdPlanner& p, const AmdCall& c) {
  const auto s = c.symbols<op_symbol::MoeDownAcc>();
  const std::uint64_t y = p.scratch(std::uint64_t{c.rows()} * s.k * s.d * 4);
  plan_products(p, c.rows(), gpu::down_products(c, y));
  p.barrier();
  choice_sum(p, c.rows(), gpu::choice_sum_of_down(c, y));
}

void plan_shared_expert(AmdPlanner& p, const AmdCall& c) {
  const auto s = c.symbols<op_symbol::SharedExpert>();
  const std::uint32_t n = c.rows();
  const auto floats = [&](std::uint64_t width) { return p.scratch(n * width * 4); };
  const std::uint64_t gate = floats(s.f), up = floats(s.f), y = floats(s.d);
  const auto expert = gpu::shared_expert(c, gate, up, y);
  const auto rows_of = [&](DType type, std::uint32_t k) { return p.scratch(n * row_bytes(type, k)); };
  std::vector<AmdProducts> products;  // one entry per type of x
  for (const AmdMatrix& m : {expert.gate, expert.up}) {
    const DType type = expert.type_of(m);
    if (!products.empty() && products.back().x_dtype == type) {
      products.back().matrices.push_back(m);
      continue;
    }
    std::uint64_t x = expert.x;
    if (type != DType::kF32) plan_quantized_rows(p, n, {expert.x, x = rows_of(type, s.d), type, s.d});
    products.push_back({x, type, s.d, {m}});
  }
  p.barrier();
  for (const AmdProducts& of_type : products) plan_products(p, n, of_type);
  p.barrier();
  std::uint64_t x = gate;
  const DType type = expert.type_of(expert.down);
  if (type == DType::kF32) {
    rdna::OpArgs args{};
    args.set_buffers<operand::Glu>({.gate = gate, .up = up, .y = gate});
    args.set_symbols<rdna::symbol::Row>({.width = s.f});
    args.set_constants(push::Glu{expert.act});
    p.launch("glu", kExpertThreads, n, 1, 1, args);
  } else {
    plan_glu_quantized(p, n, {gate, up, 0, expert.act}, {0, x = rows_of(type, s.f), type, s.f});
  }
  p.barrier();
  plan_products(p, n, {x, type, s.f, {expert.down}});
  p.barrier();
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::SharedExpert>(
      {.x = expert.x, .gate_inp = expert.gate_inp, .y = y, .hidden = expert.hidden});
  args.set_symbols<rdna::symbol::Row>({.width = s.d});
  p.launch("shared_expert", kExpertThreads, n, 1, 1, args);
}

}  // namespace zinc_rt::ring
