// Which packets become one plan with the ones behind them.
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "kernels/common/push.h"
#include "ring/cuda/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

bool is_glu(const OpCall& c) {
  static_assert(offsetof(push::Glu, act) == offsetof(push::MoeSwiglu, act));
  static_assert(std::string_view(operand::Glu::kText) == operand::MoeSwiglu::kText);
  return c.op == Op::GLU || c.op == Op::MOE_SWIGLU;
}
// Whether quantized rows lie apart from the first n inputs, rows of as many floats, of the op that wrote what they are
// made of. They may not, since that op alone would be done with its inputs by then; lower/alias.h keeps them apart.
bool is_apart(const OpCall& op, std::size_t n, const OpCall& quantize) {
  const std::uint64_t k = quantize.symbols[op_symbols::kQuantize["dim:k"]], rows = op.rows();
  const void* y = quantize.buffers[operand::Quantize::y];
  const std::uint64_t bytes = row_bytes(quantize.dtype(op_symbols::kQuantize["dtype:y"]), k);
  return std::ranges::all_of(std::span(op.buffers).first(n),
                             [&](const void* from) { return are_apart(from, rows * k * 4, y, rows * bytes); });
}

// Whether the products by gate and up of one row may leave their GLU, too. Its rows are written while other workgroups
// read x, and beside gate's and up's.
bool is_glu_of(const Planner& planner, const OpCall& products, const OpCall& glu) {
  const bool is_dense = products.op == Op::RMS_NORM_FUSED_MLP_GATE_UP;
  if ((!is_dense && products.op != Op::MOE_GATE_UP) || !is_glu(glu) || products.rows_symbol != 1 ||
      glu.rows_symbol != 1)
    return false;
  using Dense = operand::RmsNormFusedMlpGateUp;
  static_assert(operand::is_same_place(Dense::gate, operand::MoeGateUp::gate) &&
                operand::is_same_place(Dense::up, operand::MoeGateUp::up) &&
                operand::is_same_place(Dense::x, operand::MoeGateUp::x));
  constexpr std::size_t kD = op_symbols::kRmsNormFusedMlpGateUp["dim:d"];
  static_assert(kD == op_symbols::kMoeGateUp["dim:d"]);
  const void *x = products.buffers[Dense::x], *gate = products.buffers[Dense::gate], *up = products.buffers[Dense::up];
  const auto of_glu = glu.operands<operand::Glu>();
  if (of_glu.gate != gate || of_glu.up != up) return false;
  const std::uint32_t d = products.symbols[kD];
  const std::uint64_t bytes = std::uint64_t{glu.symbols[op_symbols::kGlu["dim:f"]]} * 4;
  const auto apart = [&](const void* other, std::uint64_t n) { return are_apart(of_glu.y, bytes, other, n); };
  if (!apart(up, bytes) || (of_glu.y != gate && !apart(gate, bytes))) return false;
  if (is_dense) {
    const auto matrices = gate_up_of(products);
    const bool is_quantized = products.constants<push::RmsNormFusedMlpGateUp>().quantize != 0;
    return apart(x, std::uint64_t{d} * 4) &&
           can_glu(planner, products, is_quantized ? act_dtype(matrices[0].dtype) : DType::kF32, matrices);
  }
  const auto experts = expert_products(products);
  return apart(x, row_bytes(experts->x_dtype, d)) && can_glu(planner, products, experts->x_dtype, experts->matrices);
}
void plan_products_and_glu(Planner& planner, const OpCall& products, const OpCall& glu) {
  const GluOf of{at<float>(glu, operand::Glu::y), glu.constants<push::Glu>().act};
  if (products.op == Op::MOE_GATE_UP)
    plan_experts_op(planner, products, &of);
  else
    plan_gate_up(planner, products, &of);
}

// The first is a QUANTIZE of one row, and the second reads it: the product may quantize the row itself. What it writes
// is then written while other workgroups read the row's floats.
std::size_t plan_quantized_product(Planner& planner, std::span<const OpCall> calls) {
  const OpCall &quantize = calls[0], &product = calls[1];
  const bool is_linear = product.op == Op::LINEAR;
  if (quantize.op != Op::QUANTIZE || (!is_linear && product.op != Op::MOE_DOWN_ACC) || quantize.rows_symbol != 1 ||
      product.rows_symbol != 1)
    return 0;
  using Linear = operand::Linear;
  static_assert(operand::is_same_place(Linear::x, operand::MoeDownAcc::x));
  constexpr auto kLinear = op_symbols::kLinear;
  constexpr auto kDown = op_symbols::kMoeDownAcc;
  const DType x_dtype = product.dtype(is_linear ? kLinear["dtype:x"] : kDown["dtype:x"]);
  const std::uint32_t k = product.symbols[is_linear ? kLinear["dim:k"] : kDown["dim:f"]];
  if (product.buffers[Linear::x] != quantize.buffers[operand::Quantize::y] ||
      x_dtype != quantize.dtype(op_symbols::kQuantize["dtype:y"]) || !can_quantize_x(product, k))
    return 0;
  const auto* floats = at<const float>(quantize, operand::Quantize::x);
  const auto apart = [&](const void* y) {
    return are_apart(floats, std::uint64_t{k} * 4, y, std::uint64_t{product.symbols[kLinear["dim:m"]]} * 4);
  };
  if (!is_linear) return 1 + plan_choice_sum(planner, calls.subspan(1), floats);
  if (!apart(product.buffers[Linear::y])) return 0;
  const bool is_sum = calls.size() > 2 && is_sum_of(product, calls[2]) && apart(calls[2].buffers[operand::Add::x]);
  plan_linear_op(planner, product, {.residual = is_sum ? hidden_of(calls[2]) : nullptr, .floats = floats});
  return is_sum ? 3 : 2;
}

// The first n of the calls, of which the last is a QUANTIZE, by plan(digits); and if a product by digits reads its rows
// next, that too, with the ADD of its rows. How many packets that is.
template <class Plan>
std::size_t quantize_and_multiply(Planner& planner, std::span<const OpCall> calls, std::size_t n, const Plan& plan) {
  const OpCall& quantize = calls[n - 1];
  const OpCall* next = calls.size() > n ? &calls[n] : nullptr;
  constexpr auto kSymbols = op_symbols::kQuantize;
  const bool is_read = next != nullptr && next->op == Op::LINEAR &&
                       next->buffers[operand::Linear::x] == quantize.buffers[operand::Quantize::y] &&
                       next->rows_symbol == quantize.rows_symbol &&
                       quantize.dtype(kSymbols["dtype:y"]) == DType::kQ8A256;
  const std::uint32_t k = quantize.symbols[kSymbols["dim:k"]];
  const DigitRows digits = is_read ? digits_before(planner, *next, k, {matrix_of(*next)}) : DigitRows{};
  plan(digits);
  if (digits.columns == 0) return n;
  const bool is_sum = calls.size() > n + 1 && is_sum_of(*next, calls[n + 1]);
  plan_linear_op(planner, *next, {.residual = is_sum ? hidden_of(calls[n + 1]) : nullptr, .digits = digits});
  return is_sum ? n + 2 : n + 1;
}

}  // namespace

std::size_t plan_packets(Planner& planner, std::span<const OpCall> calls) {
  const OpCall& first = calls[0];
  if (first.op == Op::MOE_GATE_TOPK) {
    plan_choices(planner, calls);
    return 1;
  }
  if (const std::size_t n = plan_normed_choices(planner, calls); n > 0) return n;
  if (calls.size() > 1) {
    const OpCall& second = calls[1];
    const bool same_rows = first.rows_symbol == second.rows_symbol;
    if (const std::size_t n = plan_choice_sum(planner, calls); n > 0) return n;
    if (is_sum_of(first, second)) {
      plan_linear_op(planner, first, {.residual = hidden_of(second)});
      return 2;
    }
    if (is_glu_of(planner, first, second)) {
      plan_products_and_glu(planner, first, second);
      return 2;
    }
    if (const std::size_t n = plan_quantized_product(planner, calls); n > 0) return n;
    const bool is_quantized = second.op == Op::QUANTIZE && same_rows;
    const void* quantized = is_quantized ? second.buffers[operand::Quantize::x] : nullptr;
    if (is_quantized && is_glu(first) && quantized == first.buffers[operand::Glu::y] && is_apart(first, 2, second)) {
      const auto glu = first.operands<operand::Glu>();
      const GluRows rows{glu.gate,
                         glu.up,
                         glu.y,
                         first.constants<push::Glu>().act,
                         second.symbols[op_symbols::kQuantize["dim:k"]],
                         second.buffers[operand::Quantize::y],
                         second.dtype(op_symbols::kQuantize["dtype:y"])};
      return quantize_and_multiply(planner, calls, 2,
                                   [&](const DigitRows& digits) { plan_glu_quantize(planner, first, rows, digits); });
    }
    if (is_quantized && is_row_norm(first)) {
      const RowNorm norm = row_norm_of(first);
      if (quantized == norm.y && is_apart(first, norm.added != nullptr ? 2 : 1, second)) {
        plan_norm_quantize(planner, first, second);
        return 2;
      }
    }
    if (can_quantize(planner, first, second)) {
      return quantize_and_multiply(planner, calls, 2, [&](const DigitRows& digits) {
        plan_attention(planner, first, &second, nullptr, digits);
      });
    }
    if (can_write_cache(planner, second, first)) {
      const bool is_followed = calls.size() > 2 && can_quantize(planner, second, calls[2]);
      const auto attention = [&](const DigitRows& digits) {
        plan_attention(planner, second, is_followed ? &calls[2] : nullptr, &first, digits);
      };
      if (is_followed) return quantize_and_multiply(planner, calls, 3, attention);
      attention({});
      return 2;
    }
  }
  find_cuda_op(first.op)->plan(planner, first);
  return 1;
}

}  // namespace zinc_rt::ring
