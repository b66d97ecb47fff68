// Norms, and the products behind them: what of it is one launch, and what products make themselves.
#include <algorithm>
#include <cstddef>

#include "kernels/common/push.h"
#include "ring/cuda/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

std::uint64_t norm_bytes(std::uint32_t d) {
  return std::uint64_t{d} * 4 + rms_bytes(d, d);
}
// Rows of x by norm_rows, with `added` to them first if not null, to rows of the types that are wanted.
void norm_rows(Planner& p, const OpCall& c, void* x, void* w, void* added, std::uint32_t d, const NormedRows& to,
               const ChoiceSum* sum = nullptr) {
  auto args = p.args(c, {d, to.digits.columns});
  void* const buffers[] = {x, w, to.floats, to.q8a32, to.q8a256, added, to.digits.tiles};
  std::ranges::copy(buffers, args.buffers);
  if (sum == nullptr) {
    p.launch("rms_norm", "norm_rows", c.rows(), 1, 1, 512, norm_bytes(d), args);
    return;
  }
  void* const of_sum[] = {sum->y, sum->ids, sum->weights, sum->scale, sum->z};
  std::ranges::copy(of_sum, args.buffers + 7);
  args.symbols[3] = sum->k, args.symbols[4] = sum->e;
  p.launch("rms_norm", "moe_sum_norm_rows", c.rows(), 1, 1, 512, std::uint64_t{d} * 4 + norm_bytes(d), args);
}
// RESIDUAL_RMS_NORM, or RMS_NORM of whole rows, and QUANTIZE of its rows if not null.
void row_norm(Planner& p, const OpCall& c, const OpCall* quantize) {
  const RowNorm norm = row_norm_of(c);
  NormedRows to{norm.y};
  if (quantize != nullptr) to.of(quantize->dtype(1)) = quantize->buffers[1];
  norm_rows(p, c, norm.x, norm.w, norm.added, c.symbols[0], to);
}

// h = RMS_NORM(x, w) in each type that the matrices want, but for what products make themselves, then the products.
// sum: null, or what is added to x first.
void norm_linear(Planner& p, const OpCall& c, bool quantized, std::uint32_t d, const std::vector<Matrix>& matrices,
                 const ChoiceSum* sum = nullptr, const GluOf* glu = nullptr) {
  const auto wanted = [&](const Matrix& m) { return quantized ? act_dtype(m.dtype) : DType::kF32; };
  const Norm norm{at<const float>(c, 1), c.constants<push::ResidualRmsNorm>().eps};
  NormedRows rows;
  const DType types[] = {DType::kF32, DType::kQ8A32, DType::kQ8A256};
  std::vector<Matrix> of_type[3];
  bool is_wanted = false;
  for (int i = 0; i < 3; ++i) {
    std::ranges::copy_if(matrices, std::back_inserter(of_type[i]),
                         [&](const Matrix& m) { return wanted(m) == types[i]; });
    if (of_type[i].empty() || can_norm(c, types[i], d)) continue;
    is_wanted = true;
    if (types[i] == DType::kQ8A256) rows.digits = digits_before(p, c, d, of_type[i]);
    if (types[i] == DType::kQ8A256 && rows.digits.is_all) continue;
    rows.of(types[i]) = p.scratch(std::uint64_t{c.rows()} * row_bytes(types[i], d));
  }
  if (is_wanted) norm_rows(p, c, c.buffers[0], c.buffers[1], nullptr, d, rows, sum);
  for (int i = 0; i < 3; ++i) {
    if (of_type[i].empty()) continue;
    const bool is_inside = can_norm(c, types[i], d);
    plan_linear(p, c, is_inside ? c.buffers[0] : rows.of(types[i]), types[i], d, of_type[i],
                {.norm = is_inside ? &norm : nullptr,
                 .digits = types[i] == DType::kQ8A256 ? rows.digits : DigitRows{},
                 .glu = glu});
  }
}

}  // namespace

bool is_row_norm(const OpCall& c) {
  return c.op == Op::RESIDUAL_RMS_NORM ||
         (c.op == Op::RMS_NORM && c.buffers[1] != nullptr && c.constants<push::RmsNorm>().group == c.symbols[0]);
}

RowNorm row_norm_of(const OpCall& c) {
  const float eps = c.constants<push::ResidualRmsNorm>().eps;
  static_assert(offsetof(push::RmsNorm, eps) == offsetof(push::ResidualRmsNorm, eps));
  if (c.op == Op::RESIDUAL_RMS_NORM) return {c.buffers[0], c.buffers[1], c.buffers[2], c.buffers[3], eps};
  return {c.buffers[0], nullptr, c.buffers[1], c.buffers[2], eps};
}

void plan_norm_quantize(Planner& p, const OpCall& c, const OpCall& quantize) {
  row_norm(p, c, &quantize);
}

bool can_norm_sum(const Planner& p, std::uint32_t d) {
  return d % 4 == 0 && std::uint64_t{d} * 4 + norm_bytes(d) <= p.most_shared();
}

void plan_norm(Planner& p, const OpCall& c) {
  const std::uint32_t d = c.symbols[0];
  if (c.op == Op::RESIDUAL_RMS_NORM) {
    row_norm(p, c, nullptr);
    return;
  }
  static_assert(offsetof(push::SsmGatedNorm, group) == offsetof(push::RmsNorm, group));
  const std::uint32_t group = c.constants<push::RmsNorm>().group;
  p.launch("rms_norm", kernel_name(c.op), c.rows(), 1, 1, kThreads, rms_bytes(d, group), p.args(c, c.symbols));
}

void plan_qkv(Planner& p, const OpCall& c, const ChoiceSum* sum) {
  std::vector<Matrix> matrices;
  for (std::size_t i = 0; i < 3; ++i)
    matrices.push_back({c.buffers[2 + i], c.dtype(4 + i), c.symbols[1 + i], at<const float>(c, 5 + i),
                        at<float>(c, 8 + i), c.symbols[1 + i]});
  norm_linear(p, c, c.constants<push::RmsNormFusedQkv>().quantize != 0, c.symbols[0], matrices, sum);
}

std::vector<Matrix> gate_up_of(const OpCall& c) {
  std::vector<Matrix> matrices;
  for (std::size_t i = 0; i < 2; ++i)
    matrices.push_back({c.buffers[2 + i], c.dtype(2 + i), c.symbols[1], nullptr, at<float>(c, 4 + i), c.symbols[1]});
  return matrices;
}

void plan_gate_up(Planner& p, const OpCall& c, const GluOf* glu) {
  const bool is_quantized = c.constants<push::RmsNormFusedMlpGateUp>().quantize != 0;
  const auto matrices = gate_up_of(c);
  const std::uint32_t d = c.symbols[0];
  norm_linear(p, c, is_quantized, d, matrices, nullptr, glu);
  // A plan of this packet alone takes no less than one with what follows it.
  if (glu == nullptr && is_quantized && can_glu(p, c, act_dtype(matrices[0].dtype), matrices))
    p.scratch(std::uint64_t{glu_workgroups()} * cuda::normed_bytes(d, traits(matrices[0].dtype).block_elems));
}

}  // namespace zinc_rt::ring
