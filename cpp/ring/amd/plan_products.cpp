// Plans matrix products: chooses their kernels (kernels/rdna/product*.hip).
#include <algorithm>

#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

using rdna::ProductArgs;

constexpr std::uint32_t kGroup = 256;  // values of k that are added up together
// From how many columns on products of quantized rows use WMMA tiles, and from how many the larger tiles. With fewer
// columns, most of a tile would be columns that do not exist.
constexpr std::uint32_t kTileFrom = 5, kLargeTileFrom = 33;

struct Shape {
  std::string kernel;  // the kernel's name, without the weight format
  std::uint32_t threads, rows, columns;
};
// Returns how many lanes of a wave compute one row: 4 or 8. With eight lanes, more loads of the matrix are in flight.
// Eight are faster, unless more than a seventh of the lanes would have no group to work on.
std::uint32_t lanes_of(std::uint32_t k) {
  const std::uint32_t n_groups = ceil_div(k, kGroup), by_8 = 8 * ceil_div(n_groups, 8),
                      by_4 = 4 * ceil_div(n_groups, 4);
  return 7 * by_8 <= 8 * by_4 ? 8 : 4;
}
// Chooses the kernel. `n` is the number of columns that are multiplied together.
Shape shape_of(const AmdProducts& products, DType w, std::uint32_t n) {
  const DType x = products.x_dtype;
  const std::uint32_t lanes = lanes_of(products.k);
  using rdna::kFewThreads;
  const auto by_tiles = [](const char* kernel, rdna::TileShape tile) {
    return Shape{kernel, tile.threads, tile.rows(), tile.columns()};
  };
  if (x == DType::kF32 && act_dtype(w) != DType::kF32) return {"_f32", kFewThreads, rdna::few_rows(4), 1};
  if (x != DType::kF32 && n >= kLargeTileFrom) return by_tiles("_tile4", rdna::kLargeTile);
  if (x != DType::kF32 && n >= kTileFrom) return by_tiles("_tile1", rdna::kSmallTile);
  const std::string of_lanes = lanes == 8 ? "_8x" : "_4x";
  if (n == 1) return {of_lanes + "1", kFewThreads, rdna::few_rows(lanes), 1};
  return {of_lanes + "4", kFewThreads, rdna::few_rows(lanes), 4};
}

// Items holds the addresses of the choices of a step, sorted by expert and cut into items of at most `most` choices.
struct Items {
  std::uint64_t items = 0, order = 0;
  std::uint32_t most = 0;
};
Items sort_choices(AmdPlanner& planner, const AmdExperts& experts, std::uint32_t n, std::uint32_t columns) {
  Items sorted;
  sorted.most = n / columns + std::min(n, experts.n + 1);
  sorted.items = planner.scratch((1 + std::uint64_t{3} * sorted.most) * 4);
  sorted.order = planner.scratch(std::uint64_t{n} * 4);
  rdna::OpArgs args{};
  args.set_buffers<rdna::binding::ChoiceItems>({.ids = experts.ids, .items = sorted.items, .order = sorted.order});
  args.set_symbols<rdna::symbol::ChoiceItems>({.n = n, .e = experts.n, .columns = columns});
  planner.launch("moe_items", 256, 1, 1, 1, args);
  planner.barrier();
  return sorted;
}

}  // namespace

void plan_products(AmdPlanner& planner, std::uint32_t n_rows, const AmdProducts& products, std::uint64_t residual) {
  const AmdExperts& experts = products.experts;
  const std::vector<AmdMatrix>& matrices = products.matrices;
  const std::uint32_t n = n_rows * std::max(experts.choices, 1u);
  // The tokens' choices are sorted by expert if an expert is chosen at least once on average, so that the expert's
  // matrix is read once per item.
  const bool is_sorted = experts.choices != 0 && n >= experts.n && n > 1;
  Items items;
  std::uint32_t sorted_by = 0;
  // All matrices of the same type are multiplied in one launch.
  for (std::size_t first = 0; first < matrices.size(); ++first) {
    const DType dtype = matrices[first].dtype;
    if (std::ranges::any_of(matrices.begin(), matrices.begin() + static_cast<std::ptrdiff_t>(first),
                            [&](const AmdMatrix& m) { return m.dtype == dtype; }))
      continue;
    std::uint32_t together = n;
    if (experts.choices != 0) together = is_sorted ? std::max(kTileFrom, n / experts.n) : 1;
    const Shape shape = shape_of(products, dtype, together);
    if (is_sorted && sorted_by != shape.columns) {
      items = sort_choices(planner, experts, n, shape.columns);
      sorted_by = shape.columns;
    }
    ProductArgs args{};
    std::uint32_t n_tiles = 0;
    for (const AmdMatrix& m : matrices) {
      if (m.dtype != dtype) continue;
      const std::uint32_t part = args.n_parts++;
      args.w[part] = m.w, args.bias[part] = m.bias, args.y[part] = m.y;
      args.expert_bytes[part] = m.expert_bytes, args.rows[part] = m.rows, args.first_tile[part] = n_tiles;
      n_tiles += ceil_div(m.rows, shape.rows);
    }
    args.x = products.x;
    args.residual = residual;
    args.ids = experts.ids;
    args.items = items.items;
    args.order = items.order;
    args.k = products.k;
    args.n = n;
    args.choices = experts.choices;
    args.x_rows = experts.x_rows;
    args.n_experts = experts.n;
    const std::uint32_t passes = experts.choices == 0 ? ceil_div(n, shape.columns) : is_sorted ? items.most : n;
    planner.launch("product_" + std::string(to_string(dtype)) + shape.kernel, shape.threads, n_tiles, passes, 1, args);
  }
}

void plan_linear_op(AmdPlanner& p, const AmdCall& c) {
  plan_products(p, c.rows(), gpu::linear_products(c));
}

std::size_t plan_linear_sum(AmdPlanner& p, std::span<const AmdCall> calls, std::size_t) {
  plan_products(p, calls[0].rows(), gpu::linear_products(calls[0]), calls[1].buffers[operand::Add::x]);
  return 2;
}

void plan_matmul_q4k(AmdPlanner& p, const AmdCall& c) {
  plan_products(p, c.rows(), gpu::matmul_q4k_products(c));
}

}  // namespace zinc_rt::ring
