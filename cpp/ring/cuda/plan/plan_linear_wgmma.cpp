// Matrix products of arithmetic `fast`: converts rows of x to bf16 tiles, then multiplies on tensor cores
// (linear_wgmma.cuh).
#include <algorithm>
#include <cstddef>

#include "ring/cuda/plan/plan_linear.h"

namespace zinc_rt::ring {
namespace {

using cuda::WgmmaShape;

bool is_float(DType dtype) {
  return traits(dtype).block_elems == 1;
}
// Returns the bytes that one row's group takes in shared memory (linear_wgmma.cuh).
std::uint32_t group_bytes(DType dtype) {
  return is_float(dtype) ? cuda::kWgmmaValues * 2 : static_cast<std::uint32_t>(row_bytes(dtype, 256));
}

// Returns the shape that takes the least time. Workgroups that exceed the GPU's capacity run after the others. A
// workgroup of two warpgroups computes half the products of one of four, but takes more than half its time, because it
// copies more per product.
const WgmmaShape& shape_for(const DeviceProfile& device, const std::vector<Matrix>& matrices, DType dtype,
                            std::uint32_t rows) {
  const auto time = [&](const WgmmaShape& shape) {
    std::uint64_t blocks = 0;
    for (const Matrix& m : matrices)
      if (m.dtype == dtype) blocks += ceil_div(m.rows, wgmma_rows(shape));
    blocks *= ceil_div(rows, shape.columns);
    return ceil_div(blocks, device.multiprocessors * wgmma_workgroups(shape)) * (shape.warpgroups == 4 ? 20 : 12);
  };
  return *std::ranges::min_element(cuda::kWgmmaShapes, {}, time);
}

// Returns the tensor maps for matrices of a float type. n_experts: 0 if there are no experts.
std::vector<Launch::Tensor> tensors_of(const std::vector<Matrix>& matrices, DType dtype, std::uint32_t k,
                                       std::uint32_t n_experts, std::uint32_t box_rows) {
  std::vector<Launch::Tensor> tensors;
  std::uint32_t at = offsetof(cuda::WgmmaArgs, maps);
  for (const Matrix& m : matrices) {
    if (m.dtype != dtype) continue;
    const std::uint64_t bytes = n_experts > 0 ? m.expert_bytes : std::uint64_t{m.rows} * k * 2;
    tensors.push_back({at, m.w, k, m.rows, box_rows, std::max(n_experts, 1u), bytes});
    at += sizeof(cuda::TensorMap);
  }
  return tensors;
}

}  // namespace

bool plan_linear_wgmma(Planner& planner, const OpCall& call, const Products& products, Place residual) {
  const auto& [x, x_dtype, k, matrices, experts] = products;
  const std::uint32_t rows = call.rows(), met = rows_met(planner.device(), call, experts);
  const bool is_expert{experts.ids};
  const DeviceProfile::Products& measured = planner.device().products;
  const std::uint32_t least = is_expert                ? measured.least_wgmma_of_experts
                              : x_dtype == DType::kF32 ? measured.least_wgmma_of_floats
                                                       : measured.least_wgmma;
  if (!planner.is_fast() || met < least || k % 32 != 0) return false;
  const bool fits = std::ranges::all_of(matrices, [&](const Matrix& m) {
    const bool has_kernel = x_dtype == DType::kF32
                                ? m.dtype == DType::kF16 || m.dtype == DType::kBF16
                                : !is_float(m.dtype) && m.dtype != DType::kFixed16 && m.rows % 16 == 0;
    return has_kernel && m.rows > 1 &&
           wgmma_shared_bytes(cuda::kWgmmaShapes[0], group_bytes(m.dtype)) <= planner.most_shared();
  });
  if (!fits) return false;

  cuda::LinearArgs args = linear_args(planner, call, k, residual);
  const std::uint32_t n_items = plan_experts(planner, call, experts, cuda::kWgmmaTile, args);
  const std::uint32_t n_tiles = is_expert ? n_items : ceil_div(rows, cuda::kWgmmaTile);
  const Place tiles = planner.scratch(n_tiles * cuda::wgmma_tile_bytes(k));
  const cuda::Bf16RowsArgs to_bf16{x,           tiles,      planner.header(), call.rows_symbol, k, args.choices,
                                   args.x_rows, args.items, args.order};
  planner.launch("bf16_rows", "bf16_rows_" + std::string(to_string(x_dtype)),
                 is_expert ? n_items * cuda::kWgmmaTile : rows, ceil_div(k, 32 * cuda::kBf16RowsThreads), 1,
                 cuda::kBf16RowsThreads, 0, to_bf16);
  args.x = tiles;
  for (const DType dtype : types_of(matrices)) {
    // Each item of experts has its own tile of x.
    const WgmmaShape& shape = is_expert ? cuda::kWgmmaShapes[0] : shape_for(planner.device(), matrices, dtype, rows);
    set_parts(args, matrices, dtype, wgmma_rows(shape));
    const cuda::WgmmaArgs all{args, {}};
    planner.launch(
        "linear_wgmma." + std::string(to_string(dtype)),
        "linear_wgmma_" + std::to_string(wgmma_rows(shape)) + "_" + std::to_string(shape.columns),
        is_expert ? 1 : ceil_div(rows, shape.columns), args.n_blocks, n_items, wgmma_threads(shape),
        wgmma_shared_bytes(shape, group_bytes(dtype)), all,
        is_float(dtype) ? tensors_of(matrices, dtype, k, experts.n, wgmma_rows(shape)) : std::vector<Launch::Tensor>{});
    args.is_beside = 1;
  }
  return true;
}

}  // namespace zinc_rt::ring
