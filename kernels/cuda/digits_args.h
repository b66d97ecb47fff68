// Matrix products by digits of sub-scales (digits.cuh): arguments and shapes. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/dtypes.h"
#include "kernels/cuda/fixed_args.h"
#include "kernels/cuda/shared_memory.h"

namespace zinc_rt::cuda {

// The products of some rows of x by digits of sub-scales (linear_digits.cuh). columns: rows of x. splits: warpgroups
// that share the stages of k. groups: groups of k in a stage. Two more warpgroups add and copy. An instruction has 64
// rows of W; where blocks of 64 rows would leave multiprocessors idle, these are several groups of 64 / groups rows.
// Shared memory: stages, each with the groups' x and the rows' W, at multiples of 1,024 bytes; v of a stage for each
// warpgroup, digits_pitch floats a row of x, so that no two of a store are in one bank; barriers.
struct DigitsShape {
  uint32_t columns, splits, groups;
};
constexpr DigitsShape kDigitsShapes[] = {{8, 4, 1},  {8, 4, 2},  {8, 4, 4},  {16, 4, 1}, {16, 4, 2},
                                         {16, 3, 4}, {32, 4, 1}, {32, 3, 2}, {64, 3, 1}};
constexpr uint32_t kMostDigitsColumns = 64;  // of these
ZRT_CUDA_HD constexpr uint32_t digits_rows(uint32_t groups) {
  return 64 / groups;
}
ZRT_CUDA_HD constexpr uint32_t digits_pitch(uint32_t groups) {
  return digits_rows(groups) + 4;
}
constexpr uint32_t digits_threads(const DigitsShape& shape) {
  return 128 * (shape.splits + 2);
}
// A group of x: 128 bytes a row for each half of its values. Piece p of 16 values lies at place p ^ row % 8, as the
// instruction reads shared memory. Then 16 sums a row as f16, then the scales.
ZRT_CUDA_HD constexpr uint32_t digits_x_bytes(uint32_t columns) {
  return columns * (256 + 32 + 4);
}
// What makes it (digit_rows.cu): tiles of `columns` rows of x, 8 to 128, one after another.
struct DigitRowsArgs {
  Address<const void> x;
  Address<void> to;
  Address<const StepHeader> step;
  uint32_t rows_symbol, k, columns;
  // Experts: a tile an item (LinearArgs); items null: none.
  uint32_t choices, x_rows;
  Address<const int32_t> items, order;
};
constexpr uint32_t kItemRowsThreads = 256;  // of a workgroup that makes an item's, a step of 32 values each
// Of a group of x: FIXED16 has products of the same shapes.
ZRT_CUDA_HD constexpr uint32_t tile_x_bytes(ActType type, uint32_t columns) {
  return type == kQ16A256 ? fixed_x_bytes(columns) : digits_x_bytes(columns);
}
constexpr uint32_t digits_stage_bytes(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  return (shape.groups * tile_x_bytes(type, shape.columns) + 64 * group_bytes + 1023) / 1024 * 1024;
}
constexpr uint32_t digits_plane_bytes(const DigitsShape& shape) {
  return shape.groups * shape.columns * (digits_pitch(shape.groups) + 1) * 4;
}
// Besides stages and planes: barriers, and what is left in front of the first stage to begin at a multiple of 1,024.
constexpr uint32_t kDigitsRoom = shared_of(1) - 2 * kKilobyte;
constexpr uint32_t digits_stages(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  const uint32_t n =
      (kDigitsRoom - shape.splits * digits_plane_bytes(shape)) / digits_stage_bytes(shape, type, group_bytes);
  return n < 12 ? n : 12;
}
// A warpgroup has a stage while the others have theirs.
constexpr bool has_digits_stages(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  return digits_stages(shape, type, group_bytes) >= shape.splits;
}
constexpr uint32_t digits_shared_bytes(const DigitsShape& shape, ActType type, uint32_t group_bytes) {
  return 1024 + digits_stages(shape, type, group_bytes) * digits_stage_bytes(shape, type, group_bytes) +
         shape.splits * digits_plane_bytes(shape) + 256;
}

// Of many rows of x (linear_digits_tile.cuh): 128 rows of W by 128 of x, in stages of a group of 256 of both.
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
