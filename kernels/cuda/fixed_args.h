// Layouts and launch shapes of the products with FIXED16 weights: linear_fixed.cuh (many rows of x) and
// linear_fixed_row.cuh (one row). Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/op_args.h"
#include "kernels/cuda/shared_memory.h"

namespace zinc_rt::cuda {

// The layout of one group (256 values of k) of a tile of `columns` rows of x, in the order of addresses:
// - the first 128 values: 128 bytes of high digits for each row, then 128 bytes of low digits for each row
// - the second 128 values: the same
// - one float scale per row
// Within a row the 128 bytes are ordered as for linear_digits.cuh (digits_args.h). The kernel that quantizes x writes
// this layout, else digit_rows.cu converts the rows.
ZRT_CUDA_HD constexpr uint32_t fixed_half_bytes(uint32_t columns) {
  return columns * 256;
}
ZRT_CUDA_HD constexpr uint32_t fixed_x_bytes(uint32_t columns) {
  return 2 * fixed_half_bytes(columns) + columns * 4;
}

// Shape of a workgroup of linear_fixed.cuh: it computes 128 rows of W by `columns` rows of x. Two warpgroups multiply,
// each for 64 of the rows of W; a third one copies. Shared memory holds three rings of stages: halves of groups of x,
// planes (high or low digits) of groups of W, and the scales of both.
constexpr uint32_t kFixedColumns[] = {128, 64};
constexpr uint32_t kFixedRows = 128, kFixedThreads = 384;
constexpr uint32_t kFixedXStages = 4, kFixedScaleStages = 2;
constexpr uint32_t kFixedPlaneBytes = kFixedRows * 256;
// Returns the bytes of the scales of a group of x and of W.
constexpr uint32_t fixed_scale_bytes(uint32_t columns) {
  return columns * 4 + kFixedRows * 2;
}
constexpr uint32_t fixed_ring_bytes(uint32_t columns, uint32_t w_stages) {
  return kFixedXStages * fixed_half_bytes(columns) + w_stages * kFixedPlaneBytes +
         kFixedScaleStages * fixed_scale_bytes(columns);
}
// Returns the number of stages for planes of W.
constexpr uint32_t fixed_w_stages(uint32_t columns) {
  return columns > 64 ? 3 : 4;
}
// Returns the shared memory of a workgroup: up to 1,024 bytes so that the first stage can begin at a multiple of 1,024,
// the rings, and the barriers.
constexpr uint32_t fixed_shared_bytes(uint32_t columns) {
  return 1024 + fixed_ring_bytes(columns, fixed_w_stages(columns)) + 2 * 8 * 10;
}
static_assert(fixed_shared_bytes(128) <= shared_of(1));

// Shape of linear_fixed_row.cuh, the product with one row of x. A block is half a tile of W (8 rows). The 8 warps of a
// workgroup take the block's groups in turn. The groups' sums (v) of fixed_row_blocks() blocks are kept in shared
// memory before they are added up in order. That number of blocks is chosen so that each warp has whole pairs of units.
// kFixedRowWorkgroups: workgroups per multiprocessor.
constexpr uint32_t kFixedRowRows = 8, kFixedRowThreads = 256, kFixedRowWorkgroups = 2;
ZRT_CUDA_HD constexpr uint32_t fixed_row_blocks(uint32_t n_groups) {  // n_groups: groups per block.
  return 16 * (n_groups < 32 ? 32 / n_groups : 1);
}
// Bytes of shared memory: x as operands, then its scales (fixed_row_x_bytes), then the group sums v. parts: half tiles
// per block (2 for gate and up together). most_blocks: the most blocks that a workgroup computes.
ZRT_CUDA_HD constexpr uint32_t fixed_row_x_bytes(uint32_t n_groups) {
  return n_groups * 512 + (n_groups + 3) / 4 * 16;
}
constexpr uint32_t fixed_row_shared_bytes(uint32_t n_groups, uint32_t parts, uint32_t most_blocks) {
  const uint32_t n_all = parts * n_groups, at_once = fixed_row_blocks(n_all),
                 bytes = (most_blocks < at_once ? most_blocks : at_once) * n_all * kFixedRowRows * 4;
  // The sums of a norm use this memory before v does.
  return fixed_row_x_bytes(n_groups) + (bytes < 512 ? 512 : bytes);
}

}  // namespace zinc_rt::cuda
