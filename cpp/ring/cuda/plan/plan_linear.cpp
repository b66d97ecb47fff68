// Plans the launches of matrix products, with the ops before and after them that run in the same kernel, and sorts
// choices by expert.
#include <algorithm>
#include <functional>

#include "ring/cuda/plan/plan_linear.h"

namespace zinc_rt::ring {
namespace {

using cuda::LinearArgs;

// Changes `shape`, a kernel for one row, so that its workgroups compute the row of k values themselves. The row goes
// behind the rest in shared memory if that does not reduce the workgroups per multiprocessor. Otherwise it goes to
// scratch memory, and its address to args.
Shape norm_shape(Planner& planner, Shape shape, DType dtype, std::uint32_t k, LinearArgs& args) {
  const std::uint32_t tiles = shape.block_rows / 16, bytes = cuda::normed_bytes(k, act_type(dtype)),
                      most = std::min(cuda::linear_most_shared(tiles, 0), planner.most_shared());
  const bool is_shared = shape.shared + bytes <= most;
  shape.function = tiles == 2 ? "linear_1_of_2_norm" : "linear_1_norm";
  shape.shared += is_shared ? bytes : 0;
  args.normed = is_shared ? Place{} : planner.scratch(std::uint64_t{shape.walkers} * bytes);
  return shape;
}

// Changes the shape if the kernel also computes the ops before or after the product.
Shape one_row_shape(Planner& planner, Shape shape, DType dtype, std::uint32_t k, const LinearWith& with,
                    LinearArgs& args) {
  if (shape.starts_next_at_once) {
    if (with.norm != nullptr) shape.function = "linear_row_norm";
    if (with.glu != nullptr) shape.function = with.norm != nullptr ? "linear_row_norm_glu" : "linear_row_glu";
    if (with.floats) shape.function = "linear_row_floats";
    return shape;
  }
  if (with.glu != nullptr) shape = glu_shape(planner.device(), dtype);
  if (with.norm != nullptr) shape = norm_shape(planner, shape, dtype, k, args);
  if (with.glu != nullptr) shape.function = with.norm != nullptr ? "linear_1_norm_glu" : "linear_1_glu";
  if (with.floats) shape.function = shape.block_rows == 32 ? "linear_1_of_2_floats" : "linear_1_floats";
  return shape;
}
// Sets the arguments for a GLU that the product computes itself. rows: rows of each matrix per block.
void set_glu(LinearArgs& args, const std::vector<Matrix>& gate_up, const GluOf& glu, std::uint32_t rows) {
  const Matrix& up = gate_up[1];
  set_parts(args, {gate_up[0]}, up.dtype, rows);
  args.parts[1] = {up.w, up.bias, up.y, up.rows, up.rows, cuda::kAbsent};
  args.glu = glu.y, args.act = glu.act;
}

// An order of choices that a product wants to read: sorted by expert, in items of up to `columns` choices. n_items: the
// largest possible number of items.
struct WantedSorting {
  Planner::Sorted sorted;
  std::uint32_t n_choices, n_items;

  WantedSorting(const OpCall& call, const Experts& experts, std::uint32_t columns)
      : sorted{experts.ids, call.rows_symbol, experts.choices, experts.n, columns},
        n_choices(call.rows() * experts.choices),
        n_items(std::min(n_choices, experts.n + 1 + n_choices / columns)) {}
  Planner::SortedAt make(Planner& planner) const { return planner.make(sorted, n_items, n_choices); }
};

// Plans one launch for matrices of two types whose kernel computes the single row itself (norm_shape). Returns false
// and plans nothing if linear_mixed.cu has no kernel for the types. args: lacks only x's row and the parts.
bool plan_mixed(Planner& planner, std::uint32_t k, const std::vector<Matrix>& matrices, const Shapes& shapes,
                LinearArgs args) {
  auto types = types_of(matrices);
  if (types.size() != 2) return false;
  if (types[0] == DType::kQ6_K) std::swap(types[0], types[1]);
  if ((types[0] != DType::kQ4_K && types[0] != DType::kQ5_K) || types[1] != DType::kQ6_K) return false;
  cuda::MixedArgs mixed{};
  Shape joined;
  std::uint32_t blocks[2];
  for (int i = 0; i < 2; ++i) {
    const Shape shape = norm_shape(planner, shapes.of(types[i]), types[i], k, args);
    if (shape.block_rows != 16) return false;
    set_parts(args, matrices, types[i], shape.block_rows);
    mixed.of[i] = args;
    blocks[i] = args.n_blocks;
    joined = i == 0 ? shape : joined;
    joined.shared = std::max(joined.shared, shape.shared);
  }
  const std::uint32_t all = blocks[0] + blocks[1], n = std::min(all, joined.walkers);
  mixed.n_first = std::clamp(ceil_div(std::uint64_t{n} * blocks[0], all), 1u, n - 1);
  planner.launch("linear_mixed." + std::string(to_string(types[0])), joined.function, n, 1, 1, joined.threads,
                 joined.shared, mixed);
  return true;
}

// Plans the launch that writes the x of each item of experts in the layout for products by digits. args: those of the
// product, without x.
Place plan_digits_of_items(Planner& planner, const OpCall& call, Place x, const LinearArgs& args,
                           std::uint32_t n_items) {
  constexpr std::uint32_t kColumns = cuda::kDigitsTile;
  const Place tiles = planner.scratch(digit_rows_bytes(args.k, n_items * kColumns, kColumns));
  const cuda::DigitRowsArgs to_tiles{x,        tiles,        planner.header(), call.rows_symbol, args.k,
                                     kColumns, args.choices, args.x_rows,      args.items,       args.order};
  planner.launch("digit_rows", "digit_rows_of_items", args.k / 256, n_items, 1, cuda::kItemRowsThreads, 0, to_tiles);
  return tiles;
}

}  // namespace

Place plan_quantize(Planner& planner, const OpCall& call, Place x, DType to, std::uint32_t k) {
  const Place rows = planner.scratch(std::uint64_t{call.rows()} * row_bytes(to, k));
  auto args = planner.args<cuda::symbol::Quantize>(
      call, {.rows = call.rows_symbol, .k = k, .dtype_y = static_cast<std::uint32_t>(to)});
  args.set_buffers<operand::Quantize>({.x = x, .y = rows});
  planner.launch("quantize", "quantize", call.rows(), ceil_div(k, 2048), 1, 256, 0, args);
  return rows;
}

DigitRows plan_digits(Planner& planner, const OpCall& call, std::uint32_t k, const std::vector<Matrix>& matrices) {
  const std::uint32_t rows = call.rows();
  const auto types = types_of(matrices);
  const auto n = std::ranges::count_if(
      types, [&](DType dtype) { return digits_shape(planner.device(), matrices, dtype, rows).columns != 0; });
  if (n == 0) return {};
  const std::uint32_t columns = digit_columns(planner.device(), matrices, rows);
  const std::uint64_t bytes =
      types[0] == DType::kFixed16 ? fixed_rows_bytes(k, rows, columns) : digit_rows_bytes(k, rows, columns);
  return {columns, planner.scratch(bytes), n == std::ssize(types)};
}

bool can_norm(const OpCall& call, DType x_dtype, std::uint32_t k) {
  return call.rows() == 1 && x_dtype != DType::kF32 && k <= cuda::kMostNormed;
}

void set_norm(LinearArgs& args, const Norm& norm) {
  args.norm_w = norm.w;
  args.norm_eps = norm.eps;
  args.inverse_k = 1.0f / static_cast<float>(args.k);
}

LinearArgs linear_args(const Planner& planner, const OpCall& call, std::uint32_t k, Place residual) {
  LinearArgs args{};
  args.rows_symbol = call.rows_symbol;
  args.k = k;
  args.step = planner.header();
  args.x_rows = 1;
  args.residual = residual;
  return args;
}

std::uint32_t plan_experts(Planner& planner, const OpCall& call, const Experts& experts, std::uint32_t columns,
                           LinearArgs& args) {
  if (!experts.ids) return 1;
  args.choices = experts.choices;
  args.ids = experts.ids;
  args.x_rows = experts.x_rows;
  args.n_experts = experts.n;
  if (call.rows() <= planner.device().products.most_from_choice) return call.rows() * experts.choices;
  const WantedSorting wanted(call, experts, columns);
  if (const auto* known = planner.find(wanted.sorted)) {
    args.items = known->items, args.order = known->order;
    return wanted.n_items;
  }
  const auto at = wanted.make(planner);
  auto group = planner.args<cuda::symbol::MoeGroup>(
      call, {.rows = call.rows_symbol, .k = experts.choices, .e = experts.n, .columns = columns});
  group.set_buffers<cuda::binding::MoeGroup>({.ids = experts.ids, .items = at.items, .order = at.order});
  planner.launch("moe_gate_topk", "moe_group", 1, 1, 1, 1024, (2 * std::uint64_t{experts.n} + 2) * 4, group);
  args.items = at.items;
  args.order = at.order;
  return wanted.n_items;
}

Sorting plan_sorting(Planner& planner, const OpCall& call, const Products& products) {
  const Experts& experts = products.experts;
  if (call.rows() <= planner.device().products.most_from_choice) return {};
  const std::uint32_t columns =
      Shapes(planner.device(), call, products.x_dtype, products.k, products.matrices, experts).columns();
  return {columns, WantedSorting(call, experts, columns).make(planner)};
}

void set_parts(LinearArgs& args, const std::vector<Matrix>& matrices, DType dtype, std::uint32_t block_rows) {
  std::uint32_t n_parts = 0, blocks = 0;
  for (const Matrix& m : matrices) {
    if (m.dtype != dtype) continue;
    args.parts[n_parts] = {m.w, m.bias, m.y, m.rows, m.rows, blocks};
    args.expert_pitch[n_parts++] = m.expert_bytes;
    blocks += ceil_div(m.rows, block_rows);
  }
  for (; n_parts < std::size(args.parts); ++n_parts) args.parts[n_parts].first_block = cuda::kAbsent;
  args.n_blocks = blocks;
}

bool can_glu(const Planner& planner, const OpCall& call, DType x_dtype, const std::vector<Matrix>& gate_up) {
  if (x_dtype == DType::kF32 || gate_up.size() != 2) return false;
  const Matrix &gate = gate_up[0], &up = gate_up[1];
  if (gate.dtype != up.dtype || gate.rows != up.rows || gate.expert_bytes != up.expert_bytes || gate.rows % 16 != 0)
    return false;
  const Shape shape = glu_shape(planner.device(), gate.dtype);
  // Some types have groups so large that only one workgroup fits a multiprocessor. Then a workgroup should not have to
  // compute a second block.
  const bool is_fixed_row = gate.dtype == DType::kFixed16 && gate.expert_bytes == 0,
             fits_twice = is_fixed_row || shape.shared <= cuda::linear_most_shared(2, 0);
  return shape.block_rows == 32 && (fits_twice || gate.rows / 16 <= planner.device().multiprocessors) &&
         // The product that reads this row has the same limit.
         can_quantize_x(planner, call, gate.rows, gate.dtype);
}

bool can_quantize_x(const Planner& planner, const OpCall& call, std::uint32_t k, DType dtype) {
  const DeviceProfile::Products& measured = planner.device().products;
  return call.rows() == 1 &&
         k <= (dtype == DType::kFixed16 ? measured.most_quantized_inside_fixed : measured.most_quantized_inside);
}

void plan_linear(Planner& planner, const OpCall& call, const Products& products, const LinearWith& with) {
  const DType x_dtype = products.x_dtype;
  const std::uint32_t k = products.k;
  const std::vector<Matrix>& matrices = products.matrices;
  const Experts& experts = products.experts;
  Place x = products.x;
  const Place residual = with.residual;
  const DeviceProfile::Products& measured = planner.device().products;
  const Norm* const norm = with.norm;
  const DigitRows& digits = with.digits;
  if (plan_linear_wgmma(planner, call, products, residual)) return;
  const bool is_integer = x_dtype != DType::kF32;
  LinearArgs args = linear_args(planner, call, k, residual);
  if (norm != nullptr) set_norm(args, *norm);
  const std::uint32_t rows = call.rows();
  const Shapes shapes(planner.device(), call, x_dtype, k, matrices, experts);
  const std::uint32_t n_items = plan_experts(planner, call, experts, shapes.columns(), args);
  const auto digits_of = [&](DType dtype) {
    return is_integer && !experts.ids ? digits_shape(planner.device(), matrices, dtype, rows) : Shape{};
  };
  args.knows_choices = experts.ids && planner.are_known(args.ids, args.items) ? 1 : 0;
  auto types = types_of(matrices);
  // The launches run at the same time. Of the products by digits, the one whose blocks take longest starts first.
  std::ranges::stable_sort(types, std::greater(), [&](DType dtype) {
    return digits_of(dtype).columns != 0 ? row_bytes(dtype, 256) : std::uint64_t{0};
  });
  args.x = x;
  if (norm != nullptr && plan_mixed(planner, k, matrices, shapes, args)) return;
  Place tiles = digits.tiles;
  if (digits.columns == 0 && has_tiles(x_dtype) && !experts.ids) {
    const DigitRows wanted = plan_digits(planner, call, k, matrices);
    tiles = wanted.tiles;
    const cuda::DigitRowsArgs to_tiles{x, wanted.tiles, planner.header(), call.rows_symbol, k, wanted.columns, 0, 1, {},
                                       {}};
    if (wanted.columns != 0)
      planner.launch("digit_rows", x_dtype == DType::kQ16A256 ? "fixed_rows" : "digit_rows", k / 256, ceil_div(rows, 4),
                     1, 32, 0, to_tiles);
  }
  if (shapes.is_by_digits()) x = plan_digits_of_items(planner, call, x, args, n_items);
  for (const DType dtype : types) {
    Shape shape = shapes.of(dtype);
    args.x = x;
    if (const Shape by_digits = digits_of(dtype); by_digits.columns != 0) shape = by_digits, args.x = tiles;
    if (rows == 1 && dtype == DType::kFixed16 && !experts.ids)
      if (const Shape row = fixed_row_shape(planner.device(), matrices, k, with.glu != nullptr); row.columns != 0)
        shape = row;
    if (norm != nullptr || with.glu != nullptr || with.floats)
      shape = one_row_shape(planner, shape, dtype, k, with, args);
    if (shapes.is_tiled() && !experts.ids && shape.walkers == 0) {
      const auto n_tiles = [&] { return blocks_of(matrices, dtype, shape.block_rows) * ceil_div(rows, shape.columns); };
      if (n_tiles() < measured.least_tiles) {
        shape = shapes.of(dtype, cuda::kSmallTile);
        if (n_tiles() < measured.least_small_tiles) shape = few_shape(planner.device(), dtype, 16, 0);
      } else if (shape.columns == cuda::kFewWarpsTile.columns && n_tiles() >= measured.many_tiles &&
                 // With blocks of 32 the kernel would need more registers than there are.
                 traits(dtype).block_elems == 256) {
        shape = shapes.of(dtype, cuda::kFewWarpsTile);
      }
    }
    if (with.glu != nullptr)
      set_glu(args, matrices, *with.glu, std::min(shape.block_rows, 16u));
    else
      set_parts(args, matrices, dtype, shape.block_rows);
    if (with.floats) args.x = with.floats, args.quantized = x;
    args.block_rows = shape.block_rows, args.sharers = shape.sharers;
    const std::uint32_t column_tiles = !experts.ids ? ceil_div(rows, shape.columns) : 1;
    const std::uint32_t shared_out = args.n_blocks * n_items * (shape.walk_over_columns ? column_tiles : 1);
    // Each tile of columns gets its share of the workgroups that the GPU runs at once.
    const std::uint32_t walkers = std::max(shape.walkers / (shape.walk_over_columns ? 1 : column_tiles), 1u);
    planner.launch(shape.image + std::string(to_string(dtype)), shape.function,
                   shape.walkers > 0 ? std::min(shared_out, walkers) : args.n_blocks,
                   shape.walk_over_columns ? 1 : column_tiles, shape.walkers > 0 ? 1 : n_items, shape.threads,
                   shape.shared, args);
    // A float product also lets the next launch start at once, so the next one must wait for its inputs itself
    // (is_beside 0).
    args.is_beside = is_integer && !shape.starts_next_at_once ? 1 : 0;
  }
  if (is_integer && experts.ids) planner.set_known(args.ids, args.items);
}

}  // namespace zinc_rt::ring
