// Matrix products: by which kernels of kernels/rdna/product*.hip.
#include <algorithm>
#include <cstdlib>

#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

using rdna::ProductArgs;

constexpr std::uint32_t kGroup = 256;  // values
// Groups of a row from which on it gets 16 lanes, and not 4: fewer would leave most of them without one.
constexpr std::uint32_t kLongRow = 12;

struct Shape {
  std::string kernel;  // behind the format
  std::uint32_t threads, rows, columns;
};
Shape shape_of(const AmdRows& x, std::uint32_t n_columns) {
  const std::uint32_t lanes = ceil_div(x.k, kGroup) >= kLongRow ? 16 : 4;
  return {(lanes == 16 ? "_16x" : "_4x") + std::string(n_columns == 1 ? "1" : "4"), rdna::kFewWaves * 32,
          rdna::few_rows(lanes), n_columns == 1 ? 1u : 4u};
}

}  // namespace

void plan_products(AmdPlanner& planner, const AmdRows& x, const std::vector<AmdMatrix>& matrices,
                   const AmdExperts& experts, std::uint64_t residual) {
  // Matrices of one type go into one launch.
  for (std::size_t first = 0; first < matrices.size(); ++first) {
    const DType dtype = matrices[first].dtype;
    if (std::ranges::any_of(matrices.begin(), matrices.begin() + static_cast<std::ptrdiff_t>(first),
                            [&](const AmdMatrix& m) { return m.dtype == dtype; }))
      continue;
    const bool is_widened = x.type == DType::kF32 && act_dtype(dtype) != DType::kF32;
    const std::uint32_t n = x.n * std::max(experts.choices, 1u);
    Shape shape = shape_of(x, experts.choices != 0 ? 1 : n);
    if (is_widened) shape = {"_f32", rdna::kFewWaves * 32, rdna::few_rows(4), 1};
    ProductArgs args{};
    std::uint32_t n_tiles = 0;
    for (const AmdMatrix& m : matrices) {
      if (m.dtype != dtype) continue;
      args.parts[args.n_parts++] = {m.w, m.bias, m.y, m.expert_bytes, m.rows, n_tiles};
      n_tiles += ceil_div(m.rows, shape.rows);
    }
    args.x = x.at;
    args.residual = residual;
    args.ids = experts.ids;
    args.k = x.k;
    args.n = n;
    args.choices = experts.choices;
    args.x_rows = experts.x_rows;
    args.n_experts = experts.n;
    planner.launch("product_" + std::string(to_string(dtype)) + shape.kernel, shape.threads, n_tiles,
                   ceil_div(n, shape.columns), 1, args);
  }
}

void plan_linear_op(AmdPlanner& p, const AmdCall& c, std::uint64_t residual) {
  static_assert(operand::is_same_place(operand::Linear::x, operand::LmHead::x) &&
                operand::is_same_place(operand::Linear::w, operand::LmHead::w));
  constexpr auto kSymbols = amd_symbols::kProduct;
  const bool is_linear = c.op() == ir::Op::LINEAR;
  plan_products(p, {c.buffer(operand::Linear::x), c.dtype(kSymbols["dtype:x"]), c.rows(), c.dim(kSymbols["dim:k"])},
                {{c.buffer(operand::Linear::w), c.dtype(kSymbols["dtype:w"]), c.dim(kSymbols["dim:m"]),
                  is_linear ? c.buffer(operand::Linear::bias) : 0,
                  is_linear ? c.buffer(operand::Linear::y) : c.buffer(operand::LmHead::logits)}},
                {}, residual);
}

void plan_matmul_q4k(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kMatmulQ4K;
  const auto o = c.operands<operand::MatmulWmmaQ4K>();
  plan_products(p, {o.a, DType::kQ8A256, c.rows(), c.dim(kSymbols["dim:k"])},
                {{o.b, DType::kQ4_K, c.dim(kSymbols["dim:m"]), 0, o.c}});
}

}  // namespace zinc_rt::ring
