// Matrix products of arithmetic `fast` (linear_wgmma.cuh): arguments and shapes. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/linear_args.h"

namespace zinc_rt::cuda {

// The products of arithmetic `fast` on tensor cores (linear_wgmma.cuh). Rows of x are bf16, in tiles of kWgmmaTile
// rows. For each 64 values of k the rows of a tile lie one after another, 128 bytes each; piece p of 16 bytes lies at
// place p ^ row % 8, as the instruction reads shared memory. Along k, values lie in the order in which a lane has those
// of W (bf16_rows.cu).
constexpr uint32_t kWgmmaTile = 128, kWgmmaValues = 64, kWgmmaBlockBytes = kWgmmaTile * kWgmmaValues * 2;
ZRT_CUDA_HD constexpr uint64_t wgmma_tile_bytes(uint32_t k) {
  return static_cast<uint64_t>((k + kWgmmaValues - 1) / kWgmmaValues) * kWgmmaBlockBytes;
}
constexpr uint32_t kBf16RowsThreads = 128;  // of a workgroup of bf16_rows.cu, a step of 32 values each
struct Bf16RowsArgs {
  Address<const void> x;
  Address<void> to;
  Address<const StepHeader> step;
  uint32_t rows_symbol, k;
  // Experts: a tile an item (LinearArgs).
  uint32_t choices, x_rows;
  Address<const int32_t> items, order;
};
// A workgroup: some warpgroups, each with 64 rows of W and all `columns` rows of x, and one warpgroup that copies to
// shared memory: two stages of groups of 256 values of W, or four of 64 values of float weights, and as many blocks of
// x as there is room for.
struct WgmmaShape {
  uint32_t warpgroups, columns;
};
constexpr WgmmaShape kWgmmaShapes[] = {{4, 128}, {2, 128}, {2, 64}};
// What boxes of a matrix are copied by: 128 bytes that the driver makes.
struct alignas(64) TensorMap {
  uint8_t bytes[128];
};
// maps: of the parts, where weights are floats: values, rows, experts, in boxes of kWgmmaValues values of the rows of a
// block, swizzled in shared memory like x.
struct WgmmaArgs {
  LinearArgs linear;
  TensorMap maps[3];
};
constexpr uint32_t wgmma_threads(const WgmmaShape& shape) {
  return 128 * (shape.warpgroups + 1);
}
constexpr uint32_t wgmma_rows(const WgmmaShape& shape) {
  return 64 * shape.warpgroups;
}
constexpr uint32_t wgmma_x_bytes(const WgmmaShape& shape) {  // of a stage
  return shape.columns * kWgmmaValues * 2;
}
constexpr uint32_t wgmma_workgroups(const WgmmaShape& shape) {  // of a multiprocessor
  return shape.columns == 64 ? 2 : 1;
}
constexpr uint32_t wgmma_w_stages(uint32_t group_bytes) {  // group_bytes: of a row of W
  return group_bytes == kWgmmaValues * 2 ? 4 : 2;
}
constexpr uint32_t wgmma_x_stages(const WgmmaShape& shape, uint32_t group_bytes) {
  const uint32_t left = shared_of(wgmma_workgroups(shape)) - 2 * kKilobyte -
                        wgmma_w_stages(group_bytes) * wgmma_rows(shape) * group_bytes;
  return left / wgmma_x_bytes(shape) < 8 ? left / wgmma_x_bytes(shape) : 8;
}
// Blocks of x begin at a multiple of 1,024 bytes; barriers come last.
constexpr uint32_t wgmma_shared_bytes(const WgmmaShape& shape, uint32_t group_bytes) {
  return 1024 + wgmma_x_stages(shape, group_bytes) * wgmma_x_bytes(shape) +
         wgmma_w_stages(group_bytes) * wgmma_rows(shape) * group_bytes + 256;
}

}  // namespace zinc_rt::cuda
