// Matrix products by digits of sub-scales (digits.cuh): arguments and shapes. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/dtypes.h"
#include "kernels/cuda/fixed_args.h"
#include "kernels/cuda/shared_memory.h"

namespace zinc_rt::cuda {

// The shape of a workgroup of linear_digits.cuh, which multiplies up to 64 rows of x by digits of sub-scales.
// - columns: rows of x
// - splits: warpgroups that multiply and take the stages of k in turn. Two more warpgroups add up and copy
// - groups: groups of k per stage. An instruction has 64 rows of W. If blocks of 64 rows are too few to use all
//   multiprocessors, a block is 64 / groups rows, and the instruction's rows are `groups` groups of them
// Shared memory holds stages, each with x and W of its groups, at multiples of 1,024 bytes; the group sums v of a stage
// for each multiplying warpgroup, digits_pitch floats per row of x, so that a store has no bank conflicts; and
// barriers.
struct DigitsShape {
  uint32_t columns, splits, groups;
};
constexpr DigitsShape kDigitsShapes[] = {{8, 4, 1},  {8, 4, 2},  {8, 4, 4},  {16, 4, 1}, {16, 4, 2},
                                         {16, 3, 4}, {32, 4, 1}, {32, 3, 2}, {64, 3, 1}};
constexpr uint32_t kMostDigitsColumns = 64;  // the largest `columns` of the table
// Returns the rows of W of a block.
ZRT_CUDA_HD constexpr uint32_t digits_rows(uint32_t groups) {
  return 64 / groups;
}
// Returns the floats from one row of x to the next among the sums v of a group.
ZRT_CUDA_HD constexpr uint32_t digits_pitch(uint32_t groups) {
  return digits_rows(groups) + 4;
}
constexpr uint32_t digits_threads(const DigitsShape& shape) {
  return 128 * (shape.splits + 2);
}
// Returns the bytes of a group (256 values of k) of a tile of x. Its layout: for each half of the values, 128 bytes per
// row; then 16 sums per row as f16; then one scale per row. Within a row of 128 bytes, piece p of 16 values is at place
// p ^ row % 8, which is the swizzle in which wgmma reads shared memory.
ZRT_CUDA_HD constexpr uint32_t digits_x_bytes(uint32_t columns) {
  return columns * (256 + 32 + 4);
}
// The arguments of digit_rows.cu, which writes tiles of `columns` (8 to 128) rows of x in that layout, one tile after
// another.
struct DigitRowsArgs {
  Address<const void> x;
  Address<void> to;
  Address<const StepHeader> step;
  // rows_symbol: number of rows of x, or the symbol for it. k: values per row. columns: rows per tile.
  uint32_t rows_symbol, k, columns;
  // With experts, each item becomes a tile (LinearArgs has the meaning of these members). items is null in dense
  // products.
  uint32_t choices, x_rows;
  Address<const int32_t> items, order;
};
// Threads of a workgroup that converts an item. Each converts a step of 32 values.
constexpr uint32_t kItemRowsThreads = 256;
// Returns the bytes of a group of a tile of x. FIXED16 has kernels of the same shapes, but another layout of x.
ZRT_CUDA_HD constexpr uint32_t tile_x_bytes(ActType type, uint32_t columns) {
  return type == kQ16A256 ? fixed_x_bytes(columns) : digits_x_bytes(columns);
}
// Returns the bytes of a stage: x and W of its groups. group_bytes: bytes of a group of one row of W.
constexpr uint32_t digits_stage_bytes(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  return (shape.groups * tile_x_bytes(type, shape.columns) + 64 * group_bytes + 1023) / 1024 * 1024;
}
// Returns the bytes of the group sums v, and of the scales of x, of a stage.
constexpr uint32_t digits_plane_bytes(const DigitsShape& shape) {
  return shape.groups * shape.columns * (digits_pitch(shape.groups) + 1) * 4;
}
// The bytes of shared memory for stages and planes (a plane is the group sums v of a stage). The rest is for barriers,
// and so that the first stage can begin at a multiple of 1,024.
constexpr uint32_t kDigitsRoom = shared_of(1) - 2 * kKilobyte;
// Returns the number of stages that fit into shared memory, at most 12.
constexpr uint32_t digits_stages(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  const uint32_t n =
      (kDigitsRoom - shape.splits * digits_plane_bytes(shape)) / digits_stage_bytes(shape, type, group_bytes);
  return n < 12 ? n : 12;
}
// Whether each multiplying warpgroup can hold a stage at the same time as the others. Shapes without that are not used.
constexpr bool has_digits_stages(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  return digits_stages(shape, type, group_bytes) >= shape.splits;
}
constexpr uint32_t digits_shared_bytes(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  return 1024 + digits_stages(shape, type, group_bytes) * digits_stage_bytes(shape, type, group_bytes) +
         shape.splits * digits_plane_bytes(shape) + 256;
}

// The shape for many rows of x (linear_digits_tile.cuh): 128 rows of W by 128 of x. A stage holds a group of 256 values
// of k of both.
constexpr uint32_t kDigitsTile = 128, kDigitsTileThreads = 384;
constexpr uint32_t digits_tile_stage_bytes(uint32_t group_bytes) {
  return (digits_x_bytes(kDigitsTile) + kDigitsTile * group_bytes + 1023) / 1024 * 1024;
}
constexpr uint32_t digits_tile_stages(uint32_t group_bytes) {
  return kDigitsRoom / digits_tile_stage_bytes(group_bytes);
}
constexpr uint32_t digits_tile_shared_bytes(uint32_t group_bytes) {
  return 1024 + digits_tile_stages(group_bytes) * digits_tile_stage_bytes(group_bytes) + 256;
}

}  // namespace zinc_rt::cuda
