// Products of FIXED16 weights on a warpgroup's integer products (linear_fixed.cuh): the layout of x, and shapes. Shared
// by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/op_args.h"
#include "kernels/cuda/shared_memory.h"

namespace zinc_rt::cuda {

// A group of a tile of x: for each half of its values the rows' high digits and then their low ones, 128 bytes a row,
// as a group for linear_digits.cuh has its values. Then the scales. Who quantizes makes it, or digit_rows.cu.
ZRT_CUDA_HD constexpr uint32_t fixed_half_bytes(uint32_t columns) {
  return columns * 256;
}
ZRT_CUDA_HD constexpr uint32_t fixed_x_bytes(uint32_t columns) {
  return 2 * fixed_half_bytes(columns) + columns * 4;
}

// A workgroup has 128 rows of W by `columns` rows of x, two warpgroups half of these rows of W each. It keeps halves of
// groups of x, planes of groups of W, and the scales of both, in a ring of stages each.
constexpr uint32_t kFixedColumns[] = {128, 64};
constexpr uint32_t kFixedRows = 128, kFixedThreads = 384;
constexpr uint32_t kFixedXStages = 4, kFixedScaleStages = 2;
constexpr uint32_t kFixedPlaneBytes = kFixedRows * 256;
constexpr uint32_t fixed_scale_bytes(uint32_t columns) {
  return columns * 4 + kFixedRows * 2;
}
constexpr uint32_t fixed_ring_bytes(uint32_t columns, uint32_t w_stages) {
  return kFixedXStages * fixed_half_bytes(columns) + w_stages * kFixedPlaneBytes +
         kFixedScaleStages * fixed_scale_bytes(columns);
}
constexpr uint32_t fixed_w_stages(uint32_t columns) {
  return columns > 64 ? 3 : 4;
}
// What is left in front of the first stage to begin at a multiple of 1,024, and barriers.
constexpr uint32_t fixed_shared_bytes(uint32_t columns) {
  return 1024 + fixed_ring_bytes(columns, fixed_w_stages(columns)) + 2 * 8 * 10;
}
static_assert(fixed_shared_bytes(128) <= shared_of(1));

// One row of x (linear_fixed_row.cuh): a block is half a tile of W, 8 warps take its groups in turn, and v of the groups
// of so many blocks is kept before it is added up. That many blocks are whole pairs of units for each warp.
constexpr uint32_t kFixedRowRows = 8, kFixedRowThreads = 256, kFixedRowWorkgroups = 2;  // workgroups: of a
                                                                                        // multiprocessor
ZRT_CUDA_HD constexpr uint32_t fixed_row_blocks(uint32_t n_groups) {                    // n_groups: of a block
  return 16 * (n_groups < 32 ? 32 / n_groups : 1);
}
// Shared memory: x, its scales, v. parts: halves of tiles of a block. most_blocks: that a workgroup has.
ZRT_CUDA_HD constexpr uint32_t fixed_row_x_bytes(uint32_t n_groups) {
  return n_groups * 512 + (n_groups + 3) / 4 * 16;
}
constexpr uint32_t fixed_row_shared_bytes(uint32_t n_groups, uint32_t parts, uint32_t most_blocks) {
  const uint32_t n_all = parts * n_groups, at_once = fixed_row_blocks(n_all),
                 bytes = (most_blocks < at_once ? most_blocks : at_once) * n_all * kFixedRowRows * 4;
  return fixed_row_x_bytes(n_groups) + (bytes < 512 ? 512 : bytes);  // a norm's sums lie there before
}

}  // namespace zinc_rt::cuda
