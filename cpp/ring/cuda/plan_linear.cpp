// Which kernel a matrix product is: by the type of the weights, the type of x, and the rows of the bucket.
#include <algorithm>

#include "ring/cuda/plan.h"

namespace zinc_rt::ring {
namespace {

using cuda::LinearArgs;

constexpr std::uint32_t kItemFromChoice = 2;  // tokens up to which each choice reads its expert's weights by itself

std::uint32_t ceil_div(std::uint64_t n, std::uint64_t by) {
  return static_cast<std::uint32_t>((n + by - 1) / by);
}

struct Shape {
  const char* function;
  std::uint32_t columns;     // rows of x a workgroup
  std::uint32_t block_rows;  // rows of W a workgroup
  std::uint32_t shared;
  std::uint32_t threads = 256;
};

// linear.cuh: two buffers of 8 warps' v, 8 columns of 20 floats a tile.
constexpr Shape integer_shape(const char* function, std::uint32_t tiles, std::uint32_t column_tiles) {
  return {function, 8 * column_tiles, 16 * tiles, 2 * 8 * tiles * column_tiles * 8 * 20 * 4};
}
constexpr Shape kShapes[] = {integer_shape("linear_8", 1, 1), integer_shape("linear_16", 1, 2),
                             integer_shape("linear_32", 1, 4)};
// linear_tile.cuh.
Shape tile_shape(DType dtype, bool is_large) {
  const std::uint32_t tiles = is_large ? 8 : 4;
  const auto group = static_cast<std::uint32_t>(row_bytes(dtype, 256));
  const std::uint32_t stage = cuda::tile_stage_bytes(tiles, group, traits(dtype).block_elems == 32);
  return {is_large ? "linear_tile_128" : "linear_tile_64", cuda::kTileColumns, 16 * tiles,
          cuda::tile_stages(stage) * stage};
}

constexpr std::uint32_t kFewColumns = 64;   // up to here the widest of kShapes, more than once if need be
constexpr std::uint32_t kWorkgroups = 132;  // of a GPU at a time; fewer of the large tiles would leave it idle

// For products of up to so many rows of x, the smallest that takes them at once, else the largest.
const Shape& integer_shape_for(std::uint32_t columns) {
  for (const Shape& shape : kShapes)
    if (columns <= shape.columns) return shape;
  return kShapes[2];
}

// float_linear.cuh; float_few.cuh; float_tile.cuh.
constexpr Shape kAnyFloatShape{"linear_widened", cuda::kFloatColumns, cuda::kFloatRows, 0};
constexpr Shape kLeastFloatShape{"linear_4", cuda::kLeastColumns, cuda::kFloatRows, 0};
constexpr Shape kFewFloatShape{"linear_16", cuda::kFewColumns, cuda::kFewRows, cuda::kFewSharedBytes,
                               cuda::kFewThreads};
constexpr Shape float_tile_shape(const char* function, std::uint32_t side) {
  return {function, side, side, cuda::float_tile_shared_bytes(side), cuda::kFloatTileThreads};
}
constexpr Shape kFloatTiles[] = {float_tile_shape("linear_tile_64", 64), float_tile_shape("linear_tile_32", 32)};

// Float rows of x, `met` of them by a matrix.
Shape float_shape_for(const std::vector<Matrix>& matrices, std::uint32_t k, std::uint32_t met, std::uint32_t n_experts,
                      std::uint32_t most_shared) {
  const bool is_in_lanes = k % 16 == 0 && std::ranges::all_of(matrices, [](const Matrix& m) {
                             return traits(m.dtype).block_elems == 1 && m.rows > 1;
                           });
  if (!is_in_lanes) return kAnyFloatShape;
  if (met <= kLeastFloatShape.columns) return kLeastFloatShape;
  if (met > kFewFloatShape.columns && kFloatTiles[0].shared <= most_shared && kFloatTiles[1].shared <= most_shared) {
    // The tiles after one another on a multiprocessor; by its instructions a large one takes three times as long.
    const auto time = [&](const Shape& tile) {
      std::uint64_t blocks = 0;
      for (const Matrix& m : matrices) blocks += ceil_div(m.rows, tile.block_rows);
      blocks *= std::uint64_t{ceil_div(met, tile.columns)} * n_experts;
      return ceil_div(blocks, kWorkgroups) * (tile.columns == 64 ? 3 : 1);
    };
    return time(kFloatTiles[0]) <= time(kFloatTiles[1]) ? kFloatTiles[0] : kFloatTiles[1];
  }
  return kFewFloatShape.shared <= most_shared ? kFewFloatShape : kAnyFloatShape;
}

}  // namespace

const void* plan_quantize(Planner& planner, const OpCall& call, const void* x, DType to, std::uint32_t k) {
  void* rows = planner.scratch(std::uint64_t{call.rows()} * row_bytes(to, k));
  auto args = planner.args(call, {k, static_cast<std::uint32_t>(to)});
  args.buffers[0] = const_cast<void*>(x);
  args.buffers[1] = rows;
  planner.launch("quantize", "quantize", call.rows(), ceil_div(k, 2048), 1, 256, 0, args);
  return rows;
}

void plan_linear(Planner& planner, const OpCall& call, const void* x, DType x_dtype, std::uint32_t k,
                 const std::vector<Matrix>& matrices, const Experts& experts, float* residual) {
  const bool is_integer = x_dtype != DType::kF32;
  LinearArgs args{};
  args.rows_symbol = call.rows_symbol;
  args.k = k;
  args.x = x;
  args.step = planner.header();
  args.x_rows = 1;
  args.residual = residual;
  const std::uint32_t rows = call.rows(), n_choices = rows * experts.choices;
  const bool is_by_choice = experts.ids != nullptr && rows <= kItemFromChoice;
  // Rows of x that meet a matrix, of an expert on the average.
  const std::uint32_t met = experts.ids == nullptr ? rows : is_by_choice ? 1 : ceil_div(n_choices, experts.n);
  // Tiles want whole tiles of W, and much shared memory.
  const bool is_tiled = is_integer && met > kFewColumns && std::ranges::all_of(matrices, [&](const Matrix& m) {
                          return m.rows % 16 == 0 && tile_shape(m.dtype, true).shared <= planner.most_shared();
                        });
  const Shape few = is_integer ? integer_shape_for(met)
                               : float_shape_for(matrices, k, met, std::max(experts.n, 1u), planner.most_shared());
  const std::uint32_t columns = is_tiled ? cuda::kTileColumns : few.columns;  // of a workgroup
  std::uint32_t column_tiles = ceil_div(rows, columns), n_items = 1;
  if (experts.ids != nullptr) {
    args.choices = experts.choices;
    args.ids = experts.ids;
    args.x_rows = experts.x_rows;
    args.n_experts = experts.n;
    column_tiles = 1;
    n_items = is_by_choice ? n_choices : std::min(n_choices, experts.n + 1 + n_choices / columns);
    if (!is_by_choice) {
      auto* items = static_cast<std::int32_t*>(planner.scratch((1 + 3 * std::uint64_t{n_items}) * 4));
      auto* order = static_cast<std::int32_t*>(planner.scratch(std::uint64_t{n_choices} * 4));
      auto group = planner.args(call, {experts.choices, experts.n, columns});
      group.buffers[0] = const_cast<std::int32_t*>(experts.ids);
      group.buffers[1] = items;
      group.buffers[2] = order;
      planner.launch("moe_gate_topk", "moe_group", 1, 1, 1, 1024, (2 * std::uint64_t{experts.n} + 2) * 4, group);
      args.items = items;
      args.order = order;
    }
  }
  std::vector<bool> done(matrices.size());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (done[i]) continue;
    const DType dtype = matrices[i].dtype;
    const auto blocks_of = [&](const Shape& shape) {
      std::uint32_t blocks = 0;
      for (const Matrix& m : matrices)
        if (m.dtype == dtype) blocks += ceil_div(m.rows, shape.block_rows);
      return blocks;
    };
    Shape shape = is_tiled ? tile_shape(dtype, true) : few;
    if (is_tiled && std::uint64_t{blocks_of(shape)} * column_tiles * n_items < kWorkgroups)
      shape = tile_shape(dtype, false);
    args.n_parts = 0;
    std::uint32_t blocks = 0;
    for (std::size_t j = i; j < matrices.size(); ++j) {
      const Matrix& m = matrices[j];
      if (m.dtype != dtype) continue;
      done[j] = true;
      args.parts[args.n_parts] = {m.w, m.bias, m.y, m.rows, m.pitch, blocks};
      args.expert_pitch[args.n_parts++] = m.expert_pitch;
      blocks += ceil_div(m.rows, shape.block_rows);
    }
    planner.launch("linear." + std::string(to_string(dtype)), shape.function, blocks, column_tiles, n_items,
                   shape.threads, shape.shared, args);
  }
}

}  // namespace zinc_rt::ring
