// Norms, and the products behind them: what is one launch, and which norms products compute themselves.
#include <algorithm>
#include <cstddef>
#include <string>

#include "kernels/common/push.h"
#include "ring/cuda/plan/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

std::uint64_t norm_bytes(std::uint32_t d) {
  return std::uint64_t{d} * 4 + rms_bytes(d, d);
}
// norm_rows over rows of x, to rows of the types that are wanted. `added`, if present, is added to x in place first.
void norm_rows(Planner& p, const OpCall& c, Place x, Place w, Place added, std::uint32_t d, const NormedRows& to,
               const ChoiceSum* sum = nullptr) {
  const ChoiceSum& choices = sum != nullptr ? *sum : ChoiceSum{};
  auto args = p.args<cuda::symbol::NormRows>(c, {.rows = c.rows_symbol,
                                                 .d = d,
                                                 .digit_columns = to.digits.columns,
                                                 .fixed_columns = to.fixed.columns,
                                                 .k = choices.k,
                                                 .e = choices.e});
  args.set_buffers<cuda::binding::NormRows>({.x = x,
                                             .w = w,
                                             .floats = to.floats,
                                             .q8a32 = to.q8a32,
                                             .q8a256 = to.q8a256,
                                             .q16a256 = to.q16a256,
                                             .added = added,
                                             .digits = to.digits.tiles,
                                             .fixed_tiles = to.fixed.tiles,
                                             .choices_y = choices.y,
                                             .ids = choices.ids,
                                             .weights = choices.weights,
                                             .expert_scale = choices.scale,
                                             .z = choices.z});
  const std::string of_types = to.q16a256 || to.fixed.tiles ? "_fixed" : "";
  if (sum == nullptr) {
    p.launch("rms_norm", "norm_rows" + of_types, c.rows(), 1, 1, 512, norm_bytes(d), args);
    return;
  }
  p.launch("rms_norm", "moe_sum_norm_rows" + of_types, c.rows(), 1, 1, 512, std::uint64_t{d} * 4 + norm_bytes(d), args);
}
// RESIDUAL_RMS_NORM, or RMS_NORM of whole rows, and QUANTIZE of its rows if not null.
void row_norm(Planner& p, const OpCall& c, const OpCall* quantize) {
  const RowNorm norm = row_norm_of(c);
  NormedRows to{norm.y};
  if (quantize != nullptr)
    to.of(quantize->dtype(op_symbols::kQuantize["dtype:y"])) = quantize->buffers[operand::Quantize::y];
  norm_rows(p, c, norm.x, norm.w, norm.added, c.symbols[op_symbols::kNorm["dim:d"]], to);
}

// h = RMS_NORM(x, w), in each type that the matrices want, unless products compute it themselves; then the products.
// sum: null, or what is added to x first.
void norm_linear(Planner& p, const OpCall& c, bool quantized, std::uint32_t d, const std::vector<Matrix>& matrices,
                 const ChoiceSum* sum = nullptr, const GluOf* glu = nullptr) {
  const auto wanted = [&](const Matrix& m) { return quantized ? act_dtype(m.dtype) : DType::kF32; };
  using Qkv = operand::RmsNormFusedQkv;
  static_assert(operand::is_same_place(Qkv::x, operand::RmsNormFusedMlpGateUp::x) &&
                operand::is_same_place(Qkv::norm_w, operand::RmsNormFusedMlpGateUp::norm_w));
  const Place x = c.buffers[Qkv::x];
  const Norm norm{c.buffers[Qkv::norm_w], c.constants<push::ResidualRmsNorm>().eps};
  NormedRows rows;
  constexpr DType types[] = {DType::kF32, DType::kQ8A32, DType::kQ8A256, DType::kQ16A256};
  constexpr int kTypes = std::size(types);
  std::vector<Matrix> of_type[kTypes];
  bool is_wanted = false;
  for (int i = 0; i < kTypes; ++i) {
    std::ranges::copy_if(matrices, std::back_inserter(of_type[i]),
                         [&](const Matrix& m) { return wanted(m) == types[i]; });
    if (of_type[i].empty() || can_norm(c, types[i], d)) continue;
    is_wanted = true;
    if (has_tiles(types[i])) rows.tiles_of(types[i]) = digits_before(p, c, d, of_type[i]);
    if (has_tiles(types[i]) && rows.tiles_of(types[i]).is_all) continue;
    rows.of(types[i]) = p.scratch(std::uint64_t{c.rows()} * row_bytes(types[i], d));
  }
  if (is_wanted) norm_rows(p, c, x, c.buffers[Qkv::norm_w], {}, d, rows, sum);
  for (int i = 0; i < kTypes; ++i) {
    if (of_type[i].empty()) continue;
    const bool is_inside = can_norm(c, types[i], d);
    plan_linear(p, c, is_inside ? x : rows.of(types[i]), types[i], d, of_type[i],
                {.norm = is_inside ? &norm : nullptr,
                 .digits = has_tiles(types[i]) ? rows.tiles_of(types[i]) : DigitRows{},
                 .glu = glu});
  }
}

}  // namespace

bool is_row_norm(const OpCall& c) {
  return c.op == Op::RESIDUAL_RMS_NORM || (c.op == Op::RMS_NORM && c.buffers[operand::RmsNorm::w] &&
                                           c.constants<push::RmsNorm>().group == c.symbols[op_symbols::kNorm["dim:d"]]);
}

RowNorm row_norm_of(const OpCall& c) {
  const float eps = c.constants<push::ResidualRmsNorm>().eps;
  static_assert(offsetof(push::RmsNorm, eps) == offsetof(push::ResidualRmsNorm, eps));
  if (c.op == Op::RESIDUAL_RMS_NORM) {
    const auto o = c.operands<operand::ResidualRmsNorm>();
    return {.x = o.residual, .added = o.x, .w = o.w, .y = o.y, .eps = eps};
  }
  const auto o = c.operands<operand::RmsNorm>();
  return {.x = o.x, .added = {}, .w = o.w, .y = o.y, .eps = eps};
}

void plan_norm_quantize(Planner& p, const OpCall& c, const OpCall& quantize) {
  row_norm(p, c, &quantize);
}

bool can_norm_sum(const Planner& p, std::uint32_t d) {
  return d % 4 == 0 && std::uint64_t{d} * 4 + norm_bytes(d) <= p.most_shared();
}

void plan_norm(Planner& p, const OpCall& c) {
  const std::uint32_t d = c.symbols[op_symbols::kNorm["dim:d"]];
  if (c.op == Op::RESIDUAL_RMS_NORM) {
    row_norm(p, c, nullptr);
    return;
  }
  static_assert(offsetof(push::SsmGatedNorm, group) == offsetof(push::RmsNorm, group));
  const std::uint32_t group = c.constants<push::RmsNorm>().group;
  p.launch("rms_norm", kernel_name(c.op), c.rows(), 1, 1, kThreads, rms_bytes(d, group), p.args_of_op(c));
}

void plan_qkv(Planner& p, const OpCall& c, const ChoiceSum* sum) {
  constexpr auto kSymbols = op_symbols::kRmsNormFusedQkv;
  const auto o = c.operands<operand::RmsNormFusedQkv>();
  const auto matrix = [](Place w, DType dtype, std::uint32_t rows, Place bias, Place y) {
    return Matrix{w, dtype, rows, bias, y, rows};
  };
  norm_linear(p, c, c.constants<push::RmsNormFusedQkv>().quantize != 0, c.symbols[kSymbols["dim:d"]],
              {matrix(o.q_w, c.dtype(kSymbols["dtype:q_w"]), c.symbols[kSymbols["dim:nq"]], o.q_b, o.q),
               matrix(o.k_w, c.dtype(kSymbols["dtype:k_w"]), c.symbols[kSymbols["dim:nk"]], o.k_b, o.k),
               matrix(o.v_w, c.dtype(kSymbols["dtype:v_w"]), c.symbols[kSymbols["dim:nv"]], o.v_b, o.v)},
              sum);
}

std::vector<Matrix> gate_up_of(const OpCall& c) {
  constexpr auto kSymbols = op_symbols::kRmsNormFusedMlpGateUp;
  const auto o = c.operands<operand::RmsNormFusedMlpGateUp>();
  const std::uint32_t f = c.symbols[kSymbols["dim:f"]];
  return {{o.gate_w, c.dtype(kSymbols["dtype:gate_w"]), f, {}, o.gate, f},
          {o.up_w, c.dtype(kSymbols["dtype:up_w"]), f, {}, o.up, f}};
}

void plan_gate_up(Planner& p, const OpCall& c, const GluOf* glu) {
  const bool is_quantized = c.constants<push::RmsNormFusedMlpGateUp>().quantize != 0;
  const auto matrices = gate_up_of(c);
  const std::uint32_t d = c.symbols[op_symbols::kRmsNormFusedMlpGateUp["dim:d"]];
  norm_linear(p, c, is_quantized, d, matrices, nullptr, glu);
}

}  // namespace zinc_rt::ring
