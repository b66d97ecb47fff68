// Chooses the kernel for float rows times float matrices: the shape that takes the least time for this many rows and
// columns.
#include <algorithm>

#include "ring/cuda/plan/plan_linear.h"

namespace zinc_rt::ring {
namespace {

// The shapes of float_linear.cuh (any k) and of float_few.cuh (few rows of x).
constexpr Shape kAnyFloatShape{"linear.", "linear_widened", cuda::kFloatColumns, cuda::kFloatRows, 0};
constexpr Shape kLeastFloatShape{"linear.", "linear_4", cuda::kLeastColumns, cuda::kFloatRows, 0};

// Returns the measured time of a workgroup of float_few.cuh, in nanoseconds.
constexpr std::uint64_t least_float_ns(std::uint32_t n_groups, std::uint32_t columns) {
  return 3000 + std::uint64_t{n_groups} * (120 + 75 * columns);
}

// A kernel of float_columns.cuh. ns() returns the measured time of a workgroup, in nanoseconds.
struct TimedColumns {
  const char* function;
  cuda::FloatColumnsShape shape;

  std::uint64_t ns(std::uint32_t n_groups, std::uint32_t block_rows, std::uint32_t sharers) const {
    const std::uint64_t times = ceil_div(std::uint64_t{n_groups} * sharers, 8);
    return 2000 + times * (1800 + std::uint64_t{block_rows} / sharers * (23 + 13 * shape.columns));
  }
};
constexpr TimedColumns kTimedColumns[] = {
    {"linear_columns_16", {16}}, {"linear_columns_8", {8}}, {"linear_columns_4", {4}}};

}  // namespace

// Returns the shape that takes the least time for `met` float rows of x and a matrix. Workgroups that exceed the GPU's
// capacity run after the others. A matrix of few rows, such as a router's, gets small blocks, so that there are enough
// workgroups.
Shape float_shape_for(const DeviceProfile& device, const std::vector<Matrix>& matrices, std::uint32_t k,
                      std::uint32_t met, std::uint32_t n_experts) {
  const bool is_in_lanes = k % 16 == 0 && std::ranges::all_of(matrices, [](const Matrix& m) {
                             return traits(m.dtype).block_elems == 1 && m.rows > 1;
                           });
  if (!is_in_lanes) return kAnyFloatShape;
  if (met <= device.products.most_least_floats) return kLeastFloatShape;
  const std::uint32_t n_groups = ceil_div(k, 256);
  const auto time = [&](const Shape& shape, std::uint32_t at_once, std::uint64_t of_workgroup) {
    std::uint64_t blocks = 0;
    for (const DType dtype : types_of(matrices)) blocks += blocks_of(matrices, dtype, shape.block_rows);
    blocks *= std::uint64_t{ceil_div(met, shape.columns)} * n_experts;
    return ceil_div(blocks, std::uint64_t{at_once} * device.multiprocessors) * of_workgroup;
  };
  Shape best = kLeastFloatShape;
  std::uint64_t least = time(best, 3, least_float_ns(n_groups, std::min(met, best.columns)));
  const auto try_columns = [&](const TimedColumns& kernel, std::uint32_t block_rows, std::uint32_t sharers) {
    const cuda::FloatColumnsShape& columns = kernel.shape;
    Shape shape{"linear.",
                kernel.function,
                columns.columns,
                block_rows,
                columns.shared_bytes(block_rows, sharers),
                cuda::kColumnsThreads};
    shape.sharers = sharers;
    if (block_rows % (columns.round() * cuda::kColumnsDepth * sharers) != 0 || shape.shared > device.most_shared)
      return;
    const std::uint64_t taken = time(shape, 1, kernel.ns(n_groups, block_rows, sharers));
    if (taken < least) least = taken, best = shape;
  };
  for (const TimedColumns& kernel : kTimedColumns)
    for (const std::uint32_t block_rows : {64, 48, 32, 16, 8})
      for (const std::uint32_t sharers : {1, 2, 4, 8}) try_columns(kernel, block_rows, sharers);
  return best;
}

bool can_norm_floats(const Planner& planner, std::uint32_t k, const Matrix& matrix) {
  const Shape shape = float_shape_for(planner.device(), {matrix}, k, 1, 1);
  return shape.function == kLeastFloatShape.function && k <= cuda::kMostNormed;
}

void plan_normed_floats(Planner& planner, const OpCall& call, Place x, std::uint32_t k, const Matrix& matrix,
                        const Norm& norm, const NormedRows& rows) {
  cuda::NormedArgs args{linear_args(planner, call, k, {}), rows.floats, rows.q8a32, rows.q8a256, rows.q16a256};
  args.linear.x = x;
  set_norm(args.linear, norm);
  set_parts(args.linear, {matrix}, matrix.dtype, kLeastFloatShape.block_rows);
  planner.launch("linear." + std::string(to_string(matrix.dtype)), "linear_4_norm", args.linear.n_blocks, 1, 1,
                 kLeastFloatShape.threads, 0, args);
}

}  // namespace zinc_rt::ring
