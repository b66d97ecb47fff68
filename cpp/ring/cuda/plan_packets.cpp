// Which packets become one plan with the ones behind them.
#include <algorithm>
#include <cstddef>

#include "kernels/common/push.h"
#include "ring/cuda/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

bool is_glu(const OpCall& c) {
  static_assert(offsetof(push::Glu, act) == offsetof(push::MoeSwiglu, act));
  return c.op == Op::GLU || c.op == Op::MOE_SWIGLU;
}
// Whether quantized rows lie apart from the first n inputs, rows of as many floats, of the op that wrote what they are
// made of. They may not, since that op alone would be done with its inputs by then; lower/alias.h keeps them apart.
bool is_apart(const OpCall& op, std::size_t n, const OpCall& quantize) {
  const std::uint64_t k = quantize.symbols[0], rows = op.rows();
  return std::ranges::all_of(std::span(op.buffers).first(n), [&](const void* from) {
    return are_apart(from, rows * k * 4, quantize.buffers[1], rows * row_bytes(quantize.dtype(1), k));
  });
}

// The first n of the calls, of which the last is a QUANTIZE, by plan(digits); and if a product by digits reads its rows
// next, that too, with the ADD of its rows. How many packets that is.
template <class Plan>
std::size_t quantize_and_multiply(Planner& planner, std::span<const OpCall> calls, std::size_t n, const Plan& plan) {
  const OpCall& quantize = calls[n - 1];
  const OpCall* next = calls.size() > n ? &calls[n] : nullptr;
  const bool is_read = next != nullptr && next->op == Op::LINEAR && next->buffers[0] == quantize.buffers[1] &&
                       next->rows_symbol == quantize.rows_symbol && quantize.dtype(1) == DType::kQ8A256;
  const DigitRows digits =
      is_read ? digits_before(planner, *next, quantize.symbols[0], {matrix_of(*next)}) : DigitRows{};
  plan(digits);
  if (digits.columns == 0) return n;
  const bool is_sum = calls.size() > n + 1 && is_sum_of(*next, calls[n + 1]);
  plan_linear_op(planner, *next, is_sum ? at<float>(calls[n + 1], 0) : nullptr, digits);
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
      plan_linear_op(planner, first, at<float>(second, 0));
      return 2;
    }
    const bool is_quantized = second.op == Op::QUANTIZE && same_rows;
    if (is_quantized && is_glu(first) && second.buffers[0] == first.buffers[2] && is_apart(first, 2, second)) {
      auto args = planner.args(first, second.symbols);
      args.buffers[3] = second.buffers[1];
      return quantize_and_multiply(planner, calls, 2, [&](const DigitRows& digits) {
        plan_glu_quantize(planner, first, second.symbols[0], args, digits);
      });
    }
    if (is_quantized && is_row_norm(first)) {
      const RowNorm norm = row_norm_of(first);
      if (second.buffers[0] == norm.y && is_apart(first, norm.added != nullptr ? 2 : 1, second)) {
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
      plan_attention(planner, second, is_followed ? &calls[2] : nullptr, &first);
      return is_followed ? 3 : 2;
    }
  }
  find_cuda_op(first.op)->plan(planner, first);
  return 1;
}

}  // namespace zinc_rt::ring
