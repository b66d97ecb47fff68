// Matrix products of arithmetic `fast` (linear_wgmma.cuh): arguments and shapes. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/linear_args.h"

namespace zinc_rt::cuda {

// The layout of x for the products of arithmetic `fast` on tensor cores. Rows of x are bf16, in tiles of kWgmmaTile
// rows. For each 64 values of k, the rows of a tile follow each other, 128 bytes each. Within a row, piece p of 16
// bytes is at place p ^ row % 8, which is the swizzle in which wgmma reads shared memory. Along k, values are in the
// order in which a lane holds those of W (bf16_rows.cu).
constexpr uint32_t kWgmmaTile = 128, kWgmmaValues = 64, kWgmmaBlockBytes = kWgmmaTile * kWgmmaValues * 2;
// Returns the bytes of a tile of x of k values.
ZRT_CUDA_HD constexpr uint64_t wgmma_tile_bytes(uint32_t k) {
  return static_cast<uint64_t>((k + kWgmmaValues - 1) / kWgmmaValues) * kWgmmaBlockBytes;
}
// Threads of a workgroup of bf16_rows.cu. Each converts a step of 32 values.
constexpr uint32_t kBf16RowsThreads = 128;
// The arguments of bf16_rows.cu.
struct Bf16RowsArgs {
  Address<const void> x;
  Address<void> to;
  Address<const StepHeader> step;
  // rows_symbol: number of rows of x, or the symbol for it. k: values per row.
  uint32_t rows_symbol, k;
  // With experts, each item becomes a tile (LinearArgs has the meaning of these members).
  uint32_t choices, x_rows;
  Address<const int32_t> items, order;
};
// The shape of a workgroup of linear_wgmma.cuh: `warpgroups` warpgroups multiply, each 64 rows of W by all `columns`
// rows of x, and one more warpgroup copies to shared memory. That holds two stages of groups of 256 values of W (or
// four stages of 64 values if weights are floats), and as many blocks of x as fit.
struct WgmmaShape {
  uint32_t warpgroups, columns;
};
constexpr WgmmaShape kWgmmaShapes[] = {{4, 128}, {2, 128}, {2, 64}};
// A tensor map of the driver (CUtensorMap): it describes a matrix and the size of the boxes that tensor_copy() copies
// from it. The host lets the driver fill these 128 bytes.
struct alignas(64) TensorMap {
  uint8_t bytes[128];
};
// maps: one per part, if the weights are floats. Their dimensions are values, rows, experts. A box is kWgmmaValues
// values of the rows of a block, swizzled in shared memory like x.
struct WgmmaArgs {
  LinearArgs linear;
  TensorMap maps[3];
};
constexpr uint32_t wgmma_threads(const WgmmaShape& shape) {
  return 128 * (shape.warpgroups + 1);
}
// Returns the rows of W of a workgroup's block.
constexpr uint32_t wgmma_rows(const WgmmaShape& shape) {
  return 64 * shape.warpgroups;
}
constexpr uint32_t wgmma_x_bytes(const WgmmaShape& shape) {  // per stage
  return shape.columns * kWgmmaValues * 2;
}
constexpr uint32_t wgmma_workgroups(const WgmmaShape& shape) {  // per multiprocessor
  return shape.columns == 64 ? 2 : 1;
}
// Returns the number of stages for W.
constexpr uint32_t wgmma_w_stages(uint32_t group_bytes) {  // group_bytes: bytes of a group (stage) of one row of W
  return group_bytes == kWgmmaValues * 2 ? 4 : 2;
}
// Returns the number of stages for x that fit beside those for W, at most 8.
constexpr uint32_t wgmma_x_stages(const WgmmaShape& shape, uint32_t group_bytes) {
  const uint32_t left = shared_of(wgmma_workgroups(shape)) - 2 * kKilobyte -
                        wgmma_w_stages(group_bytes) * wgmma_rows(shape) * group_bytes;
  return left / wgmma_x_bytes(shape) < 8 ? left / wgmma_x_bytes(shape) : 8;
}
// Returns the shared memory of a workgroup: up to 1,024 bytes so that the blocks of x begin at a multiple of 1,024, the
// stages, and 256 bytes for the barriers.
constexpr uint32_t wgmma_shared_bytes(const WgmmaShape& shape, uint32_t group_bytes) {
  return 1024 + wgmma_x_stages(shape, group_bytes) * wgmma_x_bytes(shape) +
         wgmma_w_stages(group_bytes) * wgmma_rows(shape) * group_bytes + 256;
}

}  // namespace zinc_rt::cuda
