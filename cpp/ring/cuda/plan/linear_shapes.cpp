#include "ring/cuda/plan/linear_shapes.h"

#include <algorithm>

namespace zinc_rt::ring {
namespace {

// Returns how many workgroups per multiprocessor a kernel runs that was shaped for n. FIXED16 runs only one if each
// warp handles whole groups.
std::uint32_t workgroups_of(DType dtype, std::uint32_t n) {
  return dtype == DType::kFixed16 ? 1 : n;
}

// A kernel of linear.cuh for few rows of x; the table below is ordered by the number of rows.
struct Few {
  const char *function, *of_two;
  std::uint32_t column_tiles, columns;
};
constexpr Few kFew[] = {{"linear_1", "linear_1_of_2", 0, 1},
                        {"linear_8", nullptr, 1, 8},
                        {"linear_16", nullptr, 2, 16},
                        {"linear_32", nullptr, 4, 32}};
Shape shape_of(const DeviceProfile& device, DType dtype, const Few& few, std::uint32_t tiles) {
  // With one row of x, a warp handles only half a group of FIXED16 at a time.
  const bool is_halved = dtype == DType::kFixed16 && few.column_tiles == 0;
  const std::uint32_t tile_bytes = (is_halved ? 8 : 16) * static_cast<std::uint32_t>(row_bytes(dtype, 256));
  const std::uint32_t at_once = cuda::linear_workgroups(tiles, few.column_tiles);
  return {"linear.",
          tiles == 2 ? few.of_two : few.function,
          few.columns,
          16 * tiles,
          cuda::linear_shared_bytes(tiles, few.column_tiles, tile_bytes),
          cuda::linear_threads(few.column_tiles),
          device.multiprocessors * (is_halved && tiles == 1 ? at_once : workgroups_of(dtype, at_once))};
}

// The shape of linear_by_warp.cuh, which replaces linear_8 to linear_32 for experts. It needs less shared memory. It
// reads an expert's weights from L2 once per 8 rows of x. That costs less than warps that wait for each other.
Shape by_warp_shape(const DeviceProfile& device, DType dtype) {
  const std::uint32_t tile_bytes = 16 * static_cast<std::uint32_t>(row_bytes(dtype, 256));
  return {"linear.",
          "linear_8_by_warp",
          cuda::kByWarpColumns,
          16,
          cuda::by_warp_shared_bytes(tile_bytes, traits(dtype).block_elems == 32),
          cuda::kByWarpThreads,
          device.multiprocessors * workgroups_of(dtype, cuda::kByWarpWorkgroups)};
}

// The shape of linear_tile.cuh.
Shape tile_shape(DType dtype, const cuda::TileShape& tile) {
  const auto group = static_cast<std::uint32_t>(row_bytes(dtype, 256));
  const std::uint32_t stage = cuda::tile_stage_bytes(tile.tiles, tile.columns, group, act_type(dtype));
  const char* function = tile.tiles == cuda::kSmallTile.tiles       ? "linear_tile_32"
                         : tile.threads == cuda::kLargeTile.threads ? "linear_tile_128"
                                                                    : "linear_tile_128_w8";
  return {"linear.",   function, tile.columns, 16 * tile.tiles, cuda::tile_stages(tile.tiles, stage) * stage,
          tile.threads};
}

bool has_digits(DType dtype) {
  return dtype == DType::kQ4_K || dtype == DType::kQ5_K || dtype == DType::kQ6_K;
}
// Whether linear_digits.cuh has a kernel for these weights.
bool has_shape(DType dtype, const cuda::DigitsShape& shape) {
  return (has_digits(dtype) || dtype == DType::kFixed16) &&
         cuda::has_digits_stages(shape, act_type(dtype), static_cast<std::uint32_t>(row_bytes(dtype, 256)));
}
// A kernel of linear_digits.cuh, with the measured time that a workgroup takes to compute a block of rows of W over all
// groups of k.
struct TimedDigits {
  const char* function;
  std::uint32_t time;
};
constexpr TimedDigits kTimedDigits[] = {
    {"linear_digits_8", 95},   {"linear_digits_2x8", 53},  {"linear_digits_4x8", 35},
    {"linear_digits_16", 100}, {"linear_digits_2x16", 58}, {"linear_digits_4x16", 40},
    {"linear_digits_32", 110}, {"linear_digits_2x32", 80}, {"linear_digits_64", 150}};
static_assert(std::size(kTimedDigits) == std::size(cuda::kDigitsShapes));
// The same of a tile of linear_digits_tile.cuh.
constexpr std::uint32_t kTileTime = 520;

// Returns the shape of linear_digits.cuh that is fastest for this number of rows of x; null if linear_digits_tile.cuh
// is faster. All tiles of x use the same block of rows of W. Blocks that exceed the GPU's capacity run after the others.
// All matrices get one shape, so that matrices of several types can read the same output of digit_rows. FIXED16 has
// other tiles for more rows than one of these tiles holds (fixed_shape).
const cuda::DigitsShape* few_digits(const DeviceProfile& device, const std::vector<Matrix>& matrices,
                                    std::uint32_t rows) {
  if (rows > cuda::kMostDigitsColumns && matrices[0].dtype == DType::kFixed16) return nullptr;
  const auto in_turn = [&](std::uint32_t blocks, std::uint32_t columns, std::uint32_t time) {
    return blocks == 0 ? ~std::uint64_t{0}
                       : std::uint64_t{ceil_div(blocks * ceil_div(rows, columns), device.multiprocessors)} * time;
  };
  const auto time = [&](const cuda::DigitsShape& shape) {
    std::uint32_t blocks = 0;
    for (const DType dtype : types_of(matrices))
      blocks += has_shape(dtype, shape) ? blocks_of(matrices, dtype, cuda::digits_rows(shape.groups)) : 0;
    return in_turn(blocks, shape.columns, kTimedDigits[&shape - cuda::kDigitsShapes].time);
  };
  const auto& few = *std::ranges::min_element(cuda::kDigitsShapes, {}, time);
  if (rows <= cuda::kMostDigitsColumns) return &few;
  std::uint32_t tiles = 0;
  for (const DType dtype : types_of(matrices))
    tiles += has_digits(dtype) ? blocks_of(matrices, dtype, cuda::kDigitsTile) : 0;
  return time(few) < in_turn(tiles, cuda::kDigitsTile, kTileTime) ? &few : nullptr;
}

// The shape of linear_digits_tile.cuh.
Shape digits_tile_shape(const DeviceProfile& device, DType dtype) {
  return {"linear_digits.",
          "linear_digits_128",
          cuda::kDigitsTile,
          cuda::kDigitsTile,
          cuda::digits_tile_shared_bytes(static_cast<std::uint32_t>(row_bytes(dtype, 256))),
          cuda::kDigitsTileThreads,
          device.multiprocessors,
          true};
}

// Returns the shape of linear_fixed.cuh whose tile of x takes the least time in all. A tile with twice the rows takes a
// little less than twice the time. Returns columns 0 if there are too few rows or tiles.
Shape fixed_shape(const DeviceProfile& device, const std::vector<Matrix>& matrices, std::uint32_t rows) {
  const DeviceProfile::Products& measured = device.products;
  if (rows < measured.least_fixed) return {};
  const std::uint32_t blocks = blocks_of(matrices, DType::kFixed16, cuda::kFixedRows);
  const auto time = [&](std::uint32_t columns) {
    return std::uint64_t{ceil_div(blocks * ceil_div(rows, columns), device.multiprocessors)} * (columns + 8);
  };
  const std::uint32_t columns = *std::ranges::min_element(cuda::kFixedColumns, {}, time);
  const std::uint32_t shared = cuda::fixed_shared_bytes(columns);
  const std::uint32_t least = rows > cuda::kMostDigitsColumns ? measured.least_fixed_tiles : measured.least_tiles;
  if (blocks * ceil_div(rows, columns) < least || shared > device.most_shared) return {};
  return {"linear_fixed.",
          columns == 128 ? "linear_fixed_128" : "linear_fixed_64",
          columns,
          cuda::kFixedRows,
          shared,
          cuda::kFixedThreads,
          device.multiprocessors,
          true};
}

}  // namespace

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

std::uint32_t rows_met(const DeviceProfile& device, const OpCall& call, const Experts& experts) {
  const std::uint32_t rows = call.rows();
  if (!experts.ids) return rows;
  return rows <= device.products.most_from_choice ? 1 : std::max(2u, ceil_div(rows * experts.choices, experts.n));
}

Shape few_shape(const DeviceProfile& device, DType dtype, std::uint32_t columns, std::uint64_t n_pairs) {
  const Few* few = kFew;
  while (few->columns < columns && few + 1 != std::end(kFew)) ++few;
  while (few != kFew && shape_of(device, dtype, *few, 1).shared > device.most_shared) --few;
  // A block of two tiles of FIXED16 would allow only one workgroup per multiprocessor and leave no room for the next
  // launch to begin.
  const bool is_of_two = dtype != DType::kFixed16 && few->of_two != nullptr && n_pairs >= device.products.least_pairs &&
                         shape_of(device, dtype, *few, 2).shared <= device.most_shared;
  return shape_of(device, dtype, *few, is_of_two ? 2 : 1);
}

Shape glu_shape(const DeviceProfile& device, DType dtype) {
  const Shape of_two = shape_of(device, dtype, kFew[0], 2);
  return of_two.shared <= device.most_shared ? of_two : shape_of(device, dtype, kFew[0], 1);
}

Shape fixed_row_shape(const DeviceProfile& device, const std::vector<Matrix>& matrices, std::uint32_t k, bool is_glu) {
  if (std::ranges::any_of(matrices, [](const Matrix& m) { return m.dtype == DType::kFixed16 && m.rows % 16 != 0; }))
    return {};
  const std::uint32_t walkers = device.multiprocessors * cuda::kFixedRowWorkgroups, parts = is_glu ? 2 : 1;
  const std::uint32_t blocks = blocks_of(matrices, DType::kFixed16, cuda::kFixedRowRows) / parts;
  const std::uint32_t each = ceil_div(blocks, walkers), n_groups = k / 256;
  const std::uint32_t shared = cuda::fixed_row_shared_bytes(n_groups, parts, each);
  if (shared > device.most_shared) return {};
  Shape shape{.image = "linear_fixed_row.",
              .function = each * parts * n_groups <= cuda::kFixedRowThreads / 32 ? "linear_row_short" : "linear_row",
              .columns = 1,
              .block_rows = cuda::kFixedRowRows,
              .shared = shared,
              .threads = cuda::kFixedRowThreads,
              .walkers = walkers};
  shape.starts_next_at_once = true;
  return shape;
}

Shape digits_shape(const DeviceProfile& device, const std::vector<Matrix>& matrices, DType dtype, std::uint32_t rows) {
  const DeviceProfile::Products& measured = device.products;
  const bool is_fixed = dtype == DType::kFixed16;
  if (!device.has_wgmma || (!has_digits(dtype) && !is_fixed) || rows < measured.least_digits_of_many) return {};
  if (std::ranges::any_of(matrices, [&](const Matrix& m) { return m.dtype == dtype && m.rows % 16 != 0; })) return {};
  if (const Shape tile = is_fixed ? fixed_shape(device, matrices, rows) : Shape{};
      tile.columns != 0 || (is_fixed && rows > cuda::kMostDigitsColumns))
    return tile;
  const auto group = static_cast<std::uint32_t>(row_bytes(dtype, 256));
  const cuda::DigitsShape* few = few_digits(device, matrices, rows);
  if (few == nullptr) {
    const Shape tile = digits_tile_shape(device, dtype);
    return tile.shared > device.most_shared ? Shape{} : tile;
  }
  const std::uint32_t block_rows = cuda::digits_rows(few->groups), blocks = blocks_of(matrices, dtype, block_rows);
  if (rows < measured.least_digits &&
      blocks < (dtype == DType::kQ6_K ? measured.many_digit_blocks_of_q6_k : measured.many_digit_blocks))
    return {};
  const std::uint32_t shared = digits_shared_bytes(*few, act_type(dtype), group);
  if (shared > device.most_shared) return {};
  return {"linear_digits.",
          kTimedDigits[few - cuda::kDigitsShapes].function,
          few->columns,
          block_rows,
          shared,
          digits_threads(*few),
          device.multiprocessors};
}

std::uint32_t digit_columns(const DeviceProfile& device, const std::vector<Matrix>& matrices, std::uint32_t rows) {
  if (matrices[0].dtype == DType::kFixed16)
    if (const Shape tile = fixed_shape(device, matrices, rows); tile.columns != 0) return tile.columns;
  const cuda::DigitsShape* few = few_digits(device, matrices, rows);
  return few != nullptr ? few->columns : cuda::kDigitsTile;
}

Shapes::Shapes(const DeviceProfile& device, const OpCall& call, DType x_dtype, std::uint32_t k,
               const std::vector<Matrix>& matrices, const Experts& experts)
    : matrices_(matrices),
      experts_(experts),
      device_(device),
      met_(rows_met(device, call, experts)),
      n_choices_(call.rows() * experts.choices),
      is_integer_(x_dtype != DType::kF32),
      is_tiled_(is_integer_ && fits(cuda::kSmallTile) &&
                (met_ > device_.products.most_few || (met_ > 1 && !has_few_columns()))),
      tile_(met_ > cuda::kSmallTile.columns && fits(cuda::kLargeTile) ? cuda::kLargeTile : cuda::kSmallTile) {
  if (!is_integer_) few_floats_ = float_shape_for(device_, matrices, k, met_, std::max(experts.n, 1u));
  const bool has_tiles = std::ranges::all_of(matrices, [](const Matrix& m) { return m.rows % 16 == 0; });
  is_by_warp_ = experts.ids && has_tiles;
  is_by_digits_ = is_integer_ && is_by_warp_ && device.has_wgmma && met_ >= device_.products.least_digits_of_experts &&
                  std::ranges::all_of(matrices, [&](const Matrix& m) {
                    return has_digits(m.dtype) && digits_tile_shape(device_, m.dtype).shared <= device_.most_shared;
                  });
}

Shape Shapes::of(DType dtype, const cuda::TileShape& tile) const {
  if (!is_integer_) return few_floats_;
  if (is_by_digits_) return digits_tile_shape(device_, dtype);
  if (is_tiled_) return tile_shape(dtype, tile);
  const Shape few = few_shape(device_, dtype, met_, n_pairs(dtype));
  return is_by_warp_ && few.columns >= cuda::kByWarpColumns ? by_warp_shape(device_, dtype) : few;
}

// Whether the kernels for few rows can multiply more than one row at once on this device.
bool Shapes::has_few_columns() const {
  return std::ranges::all_of(matrices_, [&](const Matrix& m) { return few_shape(device_, m.dtype, 8, 0).columns > 1; });
}
// These kernels need whole tiles of W and much shared memory.
bool Shapes::fits(const cuda::TileShape& tile) const {
  return std::ranges::all_of(matrices_, [&](const Matrix& m) {
    return m.rows % 16 == 0 && tile_shape(m.dtype, tile).shared <= device_.most_shared;
  });
}
// Returns the number of pairs of tiles in the matrices of a type; 0 if some matrix has an odd number of tiles.
std::uint64_t Shapes::n_pairs(DType dtype) const {
  std::uint64_t n = 0;
  for (const Matrix& m : matrices_) {
    if (m.dtype != dtype) continue;
    if (m.rows % 32 != 0) return 0;
    n += m.rows / 32;
  }
  return n * (!experts_.ids ? 1 : std::min(n_choices_, experts_.n));
}

}  // namespace zinc_rt::ring
