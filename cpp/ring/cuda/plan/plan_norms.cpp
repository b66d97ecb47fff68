// Norms and the products after them: which ops share a launch, and which products compute their norm themselves.
#include <algorithm>
#include <string>

#include "kernels/cuda/norm_args.h"
#include "ring/cuda/plan/ops.h"

namespace zinc_rt::ring {
namespace {

using ir::Op;

constexpr std::uint32_t kThreads = 256;

// Returns the bytes of shared memory that norm_rows needs for a row of d values.
std::uint64_t norm_bytes(std::uint32_t d) {
  return std::uint64_t{d} * 4 + rms_bytes(d, d);
}
// Plans norm_rows: normalizes rows of x and writes them in each type that a product reads. `added`, if present, is
// first added to x in place.
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
// Plans RESIDUAL_RMS_NORM, or RMS_NORM of whole rows, together with the QUANTIZE of its rows if that is not null.
void row_norm(Planner& p, const OpCall& c, const OpCall* quantize) {
  const auto norm = gpu::row_norm(c);
  NormedRows to{norm.y};
  if (quantize != nullptr) {
    const auto quantized = gpu::quantized(*quantize);
    to.of(quantized.type) = quantized.y;
  }
  norm_rows(p, c, norm.x, norm.w, norm.added, norm.d, to);
}

// Plans h = RMS_NORM(x, w), in each type that the matrices read, and then the products. If the products compute the
// norm themselves, it has no launch. sum: null, or the sum over experts that is added to x first. glu: null, or the GLU
// after gate and up products.
void norm_linear(Planner& p, const OpCall& c, const gpu::NormedProducts<Place>& products,
                 const ChoiceSum* sum = nullptr, const GluOf* glu = nullptr) {
  const std::uint32_t d = products.d;
  const Norm norm{products.norm_w, products.eps};
  NormedRows rows;
  constexpr DType types[] = {DType::kF32, DType::kQ8A32, DType::kQ8A256, DType::kQ16A256};
  constexpr int kTypes = std::size(types);
  std::vector<Matrix> of_type[kTypes];
  bool is_wanted = false;
  for (int i = 0; i < kTypes; ++i) {
    std::ranges::copy_if(products.matrices, std::back_inserter(of_type[i]),
                         [&](const Matrix& m) { return products.type_of(m) == types[i]; });
    if (of_type[i].empty() || can_norm(c, types[i], d)) continue;
    is_wanted = true;
    if (has_tiles(types[i])) rows.tiles_of(types[i]) = digits_before(p, c, d, of_type[i]);
    if (has_tiles(types[i]) && rows.tiles_of(types[i]).is_all) continue;
    rows.of(types[i]) = p.scratch(std::uint64_t{c.rows()} * row_bytes(types[i], d));
  }
  if (is_wanted) norm_rows(p, c, products.x, products.norm_w, {}, d, rows, sum);
  for (int i = 0; i < kTypes; ++i) {
    if (of_type[i].empty()) continue;
    const bool is_inside = can_norm(c, types[i], d);
    plan_linear(p, c, {is_inside ? products.x : rows.of(types[i]), types[i], d, of_type[i]},
                {.norm = is_inside ? &norm : nullptr,
                 .digits = has_tiles(types[i]) ? rows.tiles_of(types[i]) : DigitRows{},
                 .glu = glu});
  }
}

}  // namespace

bool is_row_norm(const OpCall& c) {
  if (c.op == Op::RESIDUAL_RMS_NORM) return true;
  if (c.op != Op::RMS_NORM) return false;
  const auto norm = gpu::row_norm(c);
  return norm.w && norm.group == norm.d;
}

void plan_norm_quantize(Planner& p, const OpCall& c, const OpCall& quantize) {
  row_norm(p, c, &quantize);
}

bool can_norm_sum(const Planner& p, std::uint32_t d) {
  return d % 4 == 0 && std::uint64_t{d} * 4 + norm_bytes(d) <= p.most_shared();
}

void plan_norm(Planner& p, const OpCall& c) {
  if (c.op == Op::RESIDUAL_RMS_NORM) {
    row_norm(p, c, nullptr);
    return;
  }
  const auto norm = gpu::row_norm(c);
  p.launch("rms_norm", gpu::kernel_name(c.op), c.rows(), 1, 1, kThreads, rms_bytes(norm.d, norm.group),
           p.args_of_op(c));
}

void plan_gated_norm(Planner& p, const OpCall& c) {
  constexpr std::uint32_t kMostThreads = 512;
  const auto s = c.symbols<op_symbol::GatedNorm>();
  const std::uint32_t group = c.constants<push::SsmGatedNorm>().group, parts = s.d / group * ceil_div(group, 256);
  // Two half warps per warp, each of which handles a part of a group.
  p.launch("ssm_gated_norm", "ssm_gated_norm", c.rows(), 1, 1, std::min(ceil_div(parts, 2) * 32, kMostThreads),
           rms_bytes(s.d, group),
           p.args<cuda::symbol::GatedNorm>(c, {.rows = c.rows_symbol, .d = s.d, .w_groups = s.w_groups}));
}

void plan_layer_norm(Planner& p, const OpCall& c) {
  const std::uint32_t d = c.symbols<op_symbol::Norm>().d;
  p.launch("layer_norm", "layer_norm", c.rows(), 1, 1, 512, std::uint64_t{cuda::kLayerNormPiece + ceil_div(d, 256)} * 4,
           p.args_of_op(c));
}

void plan_qkv(Planner& p, const OpCall& c, const ChoiceSum* sum) {
  norm_linear(p, c, gpu::normed_qkv(c), sum);
}

void plan_gate_up(Planner& p, const OpCall& c, const GluOf* glu) {
  norm_linear(p, c, gpu::normed_gate_up(c), nullptr, glu);
}

}  // namespace zinc_rt::ring
