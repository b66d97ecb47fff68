// Which kernel a matrix product is: by the type of the weights, the type of x, and the rows of the bucket.
#include <algorithm>
#include <functional>

#include "ring/cuda/plan_linear.h"

namespace zinc_rt::ring {
namespace {

using cuda::LinearArgs;

// Measured on an H200.
constexpr std::uint32_t kItemFromChoice = 2;  // tokens up to which each choice reads its expert's weights by itself
constexpr std::uint32_t kMostFew = 32;        // rows of x up to which few_shape is faster than tiles
constexpr std::uint32_t kLeastDigits = 17;    // rows of x from which on digits of sub-scales are faster
constexpr std::uint32_t kLeastDigitsOfExperts = 13;  // the same, of an expert on the average
// The same where so many workgroups have a block of rows of W, fewer of those whose digits cost less.
constexpr std::uint32_t kLeastDigitsOfMany = 2, kManyDigitBlocks = 64, kManyDigitBlocksOfQ6K = 80;
constexpr std::uint32_t kLeastPairs = 250;            // with fewer blocks of two tiles much of a GPU would be idle
constexpr std::uint32_t kLeastTiles = 100;            // with fewer large tiles also
constexpr std::uint32_t kLeastSmallTiles = 33;        // with fewer small tiles linear_16 fills more of it
constexpr std::uint32_t kMostQuantizedInside = 6144;  // values of a row up to which a product quantizes it as fast
constexpr std::uint32_t kManyTiles = 500;  // with so many large tiles a workgroup of 8 warps is faster than of 16

// linear.cuh, for products of up to so many rows of x the smallest that takes them at once, or else the largest that
// fits the device; of two tiles a block, if n_pairs, the pairs of tiles, keep all multiprocessors busy.
Shape few_shape(DType dtype, std::uint32_t columns, std::uint64_t n_pairs, std::uint32_t most_shared) {
  struct Few {
    const char *function, *of_two;
    std::uint32_t column_tiles, columns;
  };
  static constexpr Few kFew[] = {{"linear_1", "linear_1_of_2", 0, 1},
                                 {"linear_8", nullptr, 1, 8},
                                 {"linear_16", nullptr, 2, 16},
                                 {"linear_32", nullptr, 4, 32}};
  const std::uint32_t tile_bytes = 16 * static_cast<std::uint32_t>(row_bytes(dtype, 256));
  const auto shape = [&](const Few& few, std::uint32_t tiles) {
    return Shape{"linear.",
                 tiles == 2 ? few.of_two : few.function,
                 few.columns,
                 16 * tiles,
                 cuda::linear_shared_bytes(tiles, few.column_tiles, tile_bytes),
                 cuda::linear_threads(few.column_tiles),
                 kMultiprocessors * cuda::linear_workgroups(tiles, few.column_tiles)};
  };
  const Few* few = kFew;
  while (few->columns < columns && few + 1 != std::end(kFew)) ++few;
  while (few != kFew && shape(*few, 1).shared > most_shared) --few;
  const bool is_of_two = few->of_two != nullptr && n_pairs >= kLeastPairs && shape(*few, 2).shared <= most_shared;
  return shape(*few, is_of_two ? 2 : 1);
}

// linear_by_warp.cuh, in the place of linear_8, than which it takes less shared memory, to linear_32: to read an
// expert's weights once for each 8 of its rows of x, out of the L2, costs less than that warps wait for each other.
Shape by_warp_shape(DType dtype) {
  const std::uint32_t tile_bytes = 16 * static_cast<std::uint32_t>(row_bytes(dtype, 256));
  return {"linear.",
          "linear_8_by_warp",
          cuda::kByWarpColumns,
          16,
          cuda::by_warp_shared_bytes(tile_bytes, traits(dtype).block_elems == 32),
          cuda::kByWarpThreads,
          kMultiprocessors * cuda::kByWarpWorkgroups};
}

// What `shape`, a kernel of one row, becomes where it makes the row of k values itself. The row lies behind what else
// is in shared memory, if that costs a multiprocessor no workgroup, or in scratch memory, which args then say.
Shape norm_shape(Planner& planner, Shape shape, DType dtype, std::uint32_t k, LinearArgs& args) {
  const std::uint32_t tiles = shape.block_rows / 16, bytes = cuda::normed_bytes(k, traits(dtype).block_elems),
                      most = std::min(cuda::linear_most_shared(tiles, 0), planner.most_shared());
  const bool is_shared = shape.shared + bytes <= most;
  shape.function = tiles == 2 ? "linear_1_of_2_norm" : "linear_1_norm";
  shape.shared += is_shared ? bytes : 0;
  args.normed = is_shared ? nullptr : static_cast<std::uint8_t*>(planner.scratch(std::uint64_t{shape.walkers} * bytes));
  return shape;
}

// linear.cuh, of one row, blocks of a tile of gate and one of up.
Shape glu_shape(DType dtype, std::uint32_t most_shared) {
  return few_shape(dtype, 1, kLeastPairs, most_shared);
}

// What it becomes where it does what comes before or after the product.
Shape one_row_shape(Planner& planner, Shape shape, DType dtype, std::uint32_t k, const LinearWith& with,
                    LinearArgs& args) {
  if (with.glu != nullptr) shape = glu_shape(dtype, planner.most_shared());
  if (with.norm != nullptr) shape = norm_shape(planner, shape, dtype, k, args);
  if (with.glu != nullptr) shape.function = with.norm != nullptr ? "linear_1_norm_glu" : "linear_1_glu";
  if (with.floats != nullptr) shape.function = shape.block_rows == 32 ? "linear_1_of_2_floats" : "linear_1_floats";
  return shape;
}
void set_glu(LinearArgs& args, const std::vector<Matrix>& gate_up, const GluOf& glu) {
  const Matrix& up = gate_up[1];
  set_parts(args, {gate_up[0]}, up.dtype, 16);
  args.parts[1] = {up.w, up.bias, up.y, up.rows, up.pitch, cuda::kAbsent};
  args.glu = glu.y, args.act = glu.act;
}

// linear_tile.cuh.
Shape tile_shape(DType dtype, const cuda::TileShape& tile) {
  const auto group = static_cast<std::uint32_t>(row_bytes(dtype, 256));
  const std::uint32_t stage = cuda::tile_stage_bytes(tile.tiles, tile.columns, group, traits(dtype).block_elems == 32);
  const char* function = tile.tiles == cuda::kSmallTile.tiles       ? "linear_tile_32"
                         : tile.threads == cuda::kLargeTile.threads ? "linear_tile_128"
                                                                    : "linear_tile_128_w8";
  return {"linear.",   function, tile.columns, 16 * tile.tiles, cuda::tile_stages(tile.tiles, stage) * stage,
          tile.threads};
}

bool has_digits(DType dtype) {
  return dtype == DType::kQ4_K || dtype == DType::kQ5_K || dtype == DType::kQ6_K;
}
// A shape of linear_digits.cuh: its kernel, and what a workgroup takes for a block of rows, measured, over the groups.
struct TimedDigits {
  const char* function;
  std::uint32_t time;
};
constexpr TimedDigits kTimedDigits[] = {
    {"linear_digits_8", 95},   {"linear_digits_2x8", 53},  {"linear_digits_4x8", 35},
    {"linear_digits_16", 100}, {"linear_digits_2x16", 58}, {"linear_digits_4x16", 40},
    {"linear_digits_32", 110}, {"linear_digits_2x32", 80}, {"linear_digits_64", 150}};
static_assert(std::size(kTimedDigits) == std::size(cuda::kDigitsShapes));

// Of these the one that takes least for so many rows of x, or null: linear_digits_tile.cuh is for them. Workgroups
// share blocks of rows of W by tiles of x, and beyond that come after one another. One shape for all matrices, so that
// those of several types can have the same digit_rows.
const cuda::DigitsShape* few_digits(const std::vector<Matrix>& matrices, std::uint32_t rows) {
  if (rows > cuda::kMostDigitsColumns) return nullptr;
  const auto time = [&](const cuda::DigitsShape& shape) -> std::uint64_t {
    std::uint32_t blocks = 0;
    for (const DType dtype : types_of(matrices))
      blocks += has_digits(dtype) ? blocks_of(matrices, dtype, cuda::digits_rows(shape.groups)) : 0;
    return std::uint64_t{ceil_div(blocks * ceil_div(rows, shape.columns), kMultiprocessors)} *
           kTimedDigits[&shape - cuda::kDigitsShapes].time;
  };
  return &*std::ranges::min_element(cuda::kDigitsShapes, {}, time);
}

// linear_digits_tile.cuh.
Shape digits_tile_shape(DType dtype) {
  return {"linear_digits.",
          "linear_digits_128",
          cuda::kDigitsTile,
          cuda::kDigitsTile,
          cuda::digits_tile_shared_bytes(static_cast<std::uint32_t>(row_bytes(dtype, 256))),
          cuda::kDigitsTileThreads,
          kMultiprocessors,
          true};
}

// Either, for the products of `rows` rows of x by the matrices of a type; columns 0: there is none for them.
Shape digits_shape(const Planner& planner, const std::vector<Matrix>& matrices, DType dtype, std::uint32_t rows) {
  if (!planner.has_wgmma() || !has_digits(dtype) || rows < kLeastDigitsOfMany) return {};
  if (std::ranges::any_of(matrices, [&](const Matrix& m) { return m.dtype == dtype && m.rows % 16 != 0; })) return {};
  const auto group = static_cast<std::uint32_t>(row_bytes(dtype, 256));
  const cuda::DigitsShape* few = few_digits(matrices, rows);
  if (few == nullptr) {
    const std::uint32_t tiles = ceil_div(blocks_of(matrices, dtype, 64), 2) * ceil_div(rows, cuda::kDigitsTile);
    const Shape tile = digits_tile_shape(dtype);
    return tiles < kLeastTiles || tile.shared > planner.most_shared() ? Shape{} : tile;
  }
  const std::uint32_t block_rows = cuda::digits_rows(few->groups), blocks = blocks_of(matrices, dtype, block_rows);
  if (rows < kLeastDigits && blocks < (dtype == DType::kQ6_K ? kManyDigitBlocksOfQ6K : kManyDigitBlocks)) return {};
  if (digits_shared_bytes(*few, group) > planner.most_shared()) return {};
  return {"linear_digits.",
          kTimedDigits[few - cuda::kDigitsShapes].function,
          few->columns,
          block_rows,
          digits_shared_bytes(*few, group),
          digits_threads(*few),
          kMultiprocessors};
}

// The kernels that the products of some matrices are, by the type of each; plan_linear alone knows of norms, of grids
// that would leave a GPU idle, and of digits where there are no experts.
class Shapes {
 public:
  Shapes(const Planner& planner, const OpCall& call, DType x_dtype, std::uint32_t k,
         const std::vector<Matrix>& matrices, const Experts& experts)
      : matrices_(matrices),
        experts_(experts),
        most_shared_(planner.most_shared()),
        met_(rows_met(call, experts)),
        n_choices_(call.rows() * experts.choices),
        is_integer_(x_dtype != DType::kF32),
        is_tiled_(is_integer_ && met_ > kMostFew && fits(cuda::kSmallTile)),
        tile_(met_ > cuda::kSmallTile.columns && fits(cuda::kLargeTile) ? cuda::kLargeTile : cuda::kSmallTile) {
    if (!is_integer_) few_floats_ = float_shape_for(matrices, k, met_, std::max(experts.n, 1u), most_shared_);
    const bool has_tiles = std::ranges::all_of(matrices, [](const Matrix& m) { return m.rows % 16 == 0; });
    is_by_warp_ = experts.ids != nullptr && has_tiles;
    is_by_digits_ = is_integer_ && is_by_warp_ && planner.has_wgmma() && met_ >= kLeastDigitsOfExperts &&
                    std::ranges::all_of(matrices, [&](const Matrix& m) {
                      return has_digits(m.dtype) && digits_tile_shape(m.dtype).shared <= most_shared_;
                    });
  }

  bool is_tiled() const { return is_tiled_; }
  bool is_by_digits() const { return is_by_digits_; }  // of experts
  Shape of(DType dtype) const { return of(dtype, tile_); }
  Shape of(DType dtype, const cuda::TileShape& tile) const {
    if (!is_integer_) return few_floats_;
    if (is_by_digits_) return digits_tile_shape(dtype);
    if (is_tiled_) return tile_shape(dtype, tile);
    const Shape few = few_shape(dtype, met_, n_pairs(dtype), most_shared_);
    return is_by_warp_ && few.columns >= cuda::kByWarpColumns ? by_warp_shape(dtype) : few;
  }
  // Rows of x of a workgroup, also of an item of experts.
  std::uint32_t columns() const { return of(matrices_[0].dtype).columns; }

 private:
  // Tiles want whole tiles of W, and much shared memory.
  bool fits(const cuda::TileShape& tile) const {
    return std::ranges::all_of(matrices_, [&](const Matrix& m) {
      return m.rows % 16 == 0 && tile_shape(m.dtype, tile).shared <= most_shared_;
    });
  }
  // Of tiles of the matrices of a type; 0 where some have an odd number.
  std::uint64_t n_pairs(DType dtype) const {
    std::uint64_t n = 0;
    for (const Matrix& m : matrices_) {
      if (m.dtype != dtype) continue;
      if (m.rows % 32 != 0) return 0;
      n += m.rows / 32;
    }
    return n * (experts_.ids == nullptr ? 1 : std::min(n_choices_, experts_.n));
  }

  const std::vector<Matrix>& matrices_;
  const Experts& experts_;
  std::uint32_t most_shared_, met_, n_choices_;
  bool is_integer_, is_tiled_, is_by_warp_ = false, is_by_digits_ = false;
  const cuda::TileShape& tile_;
  Shape few_floats_;
};

// Choices sorted by expert in items of up to `columns`, which is so many items at most.
struct WantedSorting {
  Planner::Sorted sorted;
  std::uint32_t n_choices, n_items;

  WantedSorting(const OpCall& call, const Experts& experts, std::uint32_t columns)
      : sorted{experts.ids, call.rows_symbol, experts.choices, experts.n, columns},
        n_choices(call.rows() * experts.choices),
        n_items(std::min(n_choices, experts.n + 1 + n_choices / columns)) {}
  Planner::SortedAt make(Planner& planner) const { return planner.make(sorted, n_items, n_choices); }
};

// Products of one row that makes itself (norm_shape), by matrices of two types for which linear_mixed.cu has a kernel:
// one launch. False, and nothing is planned, where it has none. args: without x's row and parts.
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

// x of each item as products by digits read it. args: of experts, without x.
const void* plan_digits_of_items(Planner& planner, const OpCall& call, const void* x, const LinearArgs& args,
                                 std::uint32_t n_items) {
  constexpr std::uint32_t kColumns = cuda::kDigitsTile;
  void* tiles = planner.scratch(digit_rows_bytes(args.k, n_items * kColumns, kColumns));
  const cuda::DigitRowsArgs to_tiles{x,        tiles,        planner.header(), call.rows_symbol, args.k,
                                     kColumns, args.choices, args.x_rows,      args.items,       args.order};
  planner.launch("digit_rows", "digit_rows_of_items", args.k / 256, n_items, 1, cuda::kItemRowsThreads, 0, to_tiles);
  return tiles;
}

}  // namespace

const void* plan_quantize(Planner& planner, const OpCall& call, const void* x, DType to, std::uint32_t k) {
  void* rows = planner.scratch(std::uint64_t{call.rows()} * row_bytes(to, k));
  auto args = planner.args<cuda::symbol::Quantize>(
      call, {.rows = call.rows_symbol, .k = k, .dtype_y = static_cast<std::uint32_t>(to)});
  args.set_buffers<operand::Quantize>({.x = const_cast<void*>(x), .y = rows});
  planner.launch("quantize", "quantize", call.rows(), ceil_div(k, 2048), 1, 256, 0, args);
  return rows;
}

DigitRows plan_digits(Planner& planner, const OpCall& call, std::uint32_t k, const std::vector<Matrix>& matrices) {
  const std::uint32_t rows = call.rows();
  const auto types = types_of(matrices);
  const auto n = std::ranges::count_if(
      types, [&](DType dtype) { return digits_shape(planner, matrices, dtype, rows).columns != 0; });
  if (n == 0) return {};
  const cuda::DigitsShape* few = few_digits(matrices, rows);
  const std::uint32_t columns = few != nullptr ? few->columns : cuda::kDigitsTile;
  return {columns, planner.scratch(digit_rows_bytes(k, rows, columns)), n == std::ssize(types)};
}

bool can_norm(const OpCall& call, DType x_dtype, std::uint32_t k) {
  return call.rows() == 1 && x_dtype != DType::kF32 && k <= cuda::kMostNormed;
}

void set_norm(LinearArgs& args, const Norm& norm) {
  args.norm_w = norm.w;
  args.norm_eps = norm.eps;
  args.inverse_k = 1.0f / static_cast<float>(args.k);
}

LinearArgs linear_args(const Planner& planner, const OpCall& call, std::uint32_t k, float* residual) {
  LinearArgs args{};
  args.rows_symbol = call.rows_symbol;
  args.k = k;
  args.step = planner.header();
  args.x_rows = 1;
  args.residual = residual;
  return args;
}

std::uint32_t rows_met(const OpCall& call, const Experts& experts) {
  const std::uint32_t rows = call.rows();
  if (experts.ids == nullptr) return rows;
  return rows <= kItemFromChoice ? 1 : std::max(2u, ceil_div(rows * experts.choices, experts.n));
}

std::uint32_t plan_experts(Planner& planner, const OpCall& call, const Experts& experts, std::uint32_t columns,
                           LinearArgs& args) {
  if (experts.ids == nullptr) return 1;
  args.choices = experts.choices;
  args.ids = experts.ids;
  args.x_rows = experts.x_rows;
  args.n_experts = experts.n;
  if (call.rows() <= kItemFromChoice) return call.rows() * experts.choices;
  const WantedSorting wanted(call, experts, columns);
  if (const auto* known = planner.find(wanted.sorted)) {
    args.items = known->items, args.order = known->order;
    return wanted.n_items;
  }
  const auto at = wanted.make(planner);
  auto group = planner.args<cuda::symbol::MoeGroup>(
      call, {.rows = call.rows_symbol, .k = experts.choices, .e = experts.n, .columns = columns});
  group.set_buffers<cuda::binding::MoeGroup>(
      {.ids = const_cast<std::int32_t*>(experts.ids), .items = at.items, .order = at.order});
  planner.launch("moe_gate_topk", "moe_group", 1, 1, 1, 1024, (2 * std::uint64_t{experts.n} + 2) * 4, group);
  args.items = at.items;
  args.order = at.order;
  return wanted.n_items;
}

Sorting plan_sorting(Planner& planner, const OpCall& call, const ExpertProducts& products) {
  const Experts& experts = products.experts;
  if (call.rows() <= kItemFromChoice) return {};
  const std::uint32_t columns =
      Shapes(planner, call, products.x_dtype, products.k, products.matrices, experts).columns();
  return {columns, WantedSorting(call, experts, columns).make(planner)};
}

void set_parts(LinearArgs& args, const std::vector<Matrix>& matrices, DType dtype, std::uint32_t block_rows) {
  std::uint32_t n_parts = 0, blocks = 0;
  for (const Matrix& m : matrices) {
    if (m.dtype != dtype) continue;
    args.parts[n_parts] = {m.w, m.bias, m.y, m.rows, m.pitch, blocks};
    args.expert_pitch[n_parts++] = m.expert_pitch;
    blocks += ceil_div(m.rows, block_rows);
  }
  for (; n_parts < std::size(args.parts); ++n_parts) args.parts[n_parts].first_block = cuda::kAbsent;
  args.n_blocks = blocks;
}

std::uint32_t blocks_of(const std::vector<Matrix>& matrices, DType dtype, std::uint32_t block_rows) {
  std::uint32_t n = 0;
  for (const Matrix& m : matrices) n += m.dtype == dtype ? ceil_div(m.rows, block_rows) : 0;
  return n;
}

std::vector<DType> types_of(const std::vector<Matrix>& matrices) {
  std::vector<DType> types;
  for (const Matrix& m : matrices)
    if (std::ranges::find(types, m.dtype) == types.end()) types.push_back(m.dtype);
  return types;
}

bool can_glu(const Planner& planner, const OpCall& call, DType x_dtype, const std::vector<Matrix>& gate_up) {
  if (x_dtype == DType::kF32 || gate_up.size() != 2) return false;
  const Matrix &gate = gate_up[0], &up = gate_up[1];
  if (gate.dtype != up.dtype || gate.rows != up.rows || gate.pitch != up.pitch ||
      gate.expert_pitch != up.expert_pitch || gate.rows % 16 != 0)
    return false;
  const Shape shape = glu_shape(gate.dtype, planner.most_shared());
  // Where a multiprocessor has one workgroup of a type's wide groups, blocks should not come after one another.
  const bool fits_twice = shape.shared <= cuda::linear_most_shared(2, 0);
  return shape.block_rows == 32 && (fits_twice || gate.rows / 16 <= kMultiprocessors) &&
         can_quantize_x(call, gate.rows);  // as what follows does
}

bool can_quantize_x(const OpCall& call, std::uint32_t k) {
  return call.rows() == 1 && k <= kMostQuantizedInside;
}

void plan_linear(Planner& planner, const OpCall& call, const void* x, DType x_dtype, std::uint32_t k,
                 const std::vector<Matrix>& matrices, const LinearWith& with) {
  const Experts& experts = with.experts;
  float* const residual = with.residual;
  const Norm* const norm = with.norm;
  const DigitRows& digits = with.digits;
  if (plan_linear_wgmma(planner, call, x, x_dtype, k, matrices, experts, residual)) return;
  const bool is_integer = x_dtype != DType::kF32;
  LinearArgs args = linear_args(planner, call, k, residual);
  if (norm != nullptr) set_norm(args, *norm);
  const std::uint32_t rows = call.rows();
  const Shapes shapes(planner, call, x_dtype, k, matrices, experts);
  const std::uint32_t n_items = plan_experts(planner, call, experts, shapes.columns(), args);
  const auto digits_of = [&](DType dtype) {
    return is_integer && experts.ids == nullptr ? digits_shape(planner, matrices, dtype, rows) : Shape{};
  };
  args.knows_choices = experts.ids != nullptr && planner.are_known(args.ids, args.items) ? 1 : 0;
  auto types = types_of(matrices);
  // Products run beside each other: of those by digits that which takes the longest for a block begins.
  std::ranges::stable_sort(types, std::greater(), [&](DType dtype) {
    return digits_of(dtype).columns != 0 ? row_bytes(dtype, 256) : std::uint64_t{0};
  });
  args.x = x;
  if (norm != nullptr && plan_mixed(planner, k, matrices, shapes, args)) return;
  const void* tiles = digits.tiles;
  if (digits.columns == 0 && x_dtype == DType::kQ8A256 && experts.ids == nullptr) {
    const DigitRows wanted = plan_digits(planner, call, k, matrices);
    tiles = wanted.tiles;
    const cuda::DigitRowsArgs to_tiles{x, wanted.tiles, planner.header(), call.rows_symbol, k, wanted.columns, 0,
                                       1, nullptr,      nullptr};
    if (wanted.columns != 0) planner.launch("digit_rows", "digit_rows", k / 256, ceil_div(rows, 4), 1, 32, 0, to_tiles);
  }
  if (shapes.is_by_digits()) x = plan_digits_of_items(planner, call, x, args, n_items);
  for (const DType dtype : types) {
    Shape shape = shapes.of(dtype);
    args.x = x;
    if (const Shape by_digits = digits_of(dtype); by_digits.columns != 0) shape = by_digits, args.x = tiles;
    if (norm != nullptr || with.glu != nullptr || with.floats != nullptr)
      shape = one_row_shape(planner, shape, dtype, k, with, args);
    if (shapes.is_tiled() && experts.ids == nullptr && shape.walkers == 0) {
      const auto n_tiles = [&] { return blocks_of(matrices, dtype, shape.block_rows) * ceil_div(rows, shape.columns); };
      if (n_tiles() < kLeastTiles) {
        shape = shapes.of(dtype, cuda::kSmallTile);
        if (n_tiles() < kLeastSmallTiles) shape = few_shape(dtype, 16, 0, planner.most_shared());
      } else if (shape.columns == cuda::kFewWarpsTile.columns && n_tiles() >= kManyTiles &&
                 traits(dtype).block_elems == 256) {  // of blocks of 32 it has not enough registers
        shape = shapes.of(dtype, cuda::kFewWarpsTile);
      }
    }
    if (with.glu != nullptr)
      set_glu(args, matrices, *with.glu);
    else
      set_parts(args, matrices, dtype, shape.block_rows);
    if (with.floats != nullptr) args.x = with.floats, args.quantized = const_cast<void*>(x);
    args.block_rows = shape.block_rows, args.sharers = shape.sharers;
    const std::uint32_t column_tiles = experts.ids == nullptr ? ceil_div(rows, shape.columns) : 1;
    const std::uint32_t shared_out = args.n_blocks * n_items * (shape.walk_over_columns ? column_tiles : 1);
    // Of every tile of columns as many as fit a GPU at once.
    const std::uint32_t walkers = std::max(shape.walkers / (shape.walk_over_columns ? 1 : column_tiles), 1u);
    planner.launch(shape.image + std::string(to_string(dtype)), shape.function,
                   shape.walkers > 0 ? std::min(shared_out, walkers) : args.n_blocks,
                   shape.walk_over_columns ? 1 : column_tiles, shape.walkers > 0 ? 1 : n_items, shape.threads,
                   shape.shared, args);
    args.is_beside = is_integer ? 1 : 0;  // float products let the next start before their inputs are there
  }
  if (is_integer && experts.ids != nullptr) planner.set_known(args.ids, args.items);
}

}  // namespace zinc_rt::ring
