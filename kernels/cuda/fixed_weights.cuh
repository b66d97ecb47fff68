// The device layout of FIXED16 weights. A tile is 16 rows of W. One group (256 values of k) of a tile is two halves of
// 8 rows. A half is, in order: the plane of high digits, the plane of low digits, and 8 scales (bf16).
// A plane holds 8 rows by 256 values as four pairs of steps of 32 values, 512 bytes a pair. In a pair, each lane of a
// warp has 16 bytes, those that it passes to an mma. For lane L these are values of row L / 4 of the half: for each of
// the two steps, 4 values from L % 4 * 4 on and 4 values from L % 4 * 4 + 16 on. fixed_place() is the formula.
// An mma operand has 16 rows. They are either the same plane of both halves, or both planes of the same half; in either
// case a lane reads its 16 bytes at the same offset of both.
#pragma once

#include "kernels/common/quant_blocks.h"
#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kFixedPlane = 8 * 256, kFixedHalf = 2 * kFixedPlane + 16, kFixedGroup = 2 * kFixedHalf;
static_assert(kFixedGroup == 16 * sizeof(BlockFixed16), "a tile takes the room of its rows");

// Returns the offset, in bytes from the beginning of a tile's group, of a digit of value i (0 to 255) of row `row` (0
// to 15). plane: 0 for the high digits, 1 for the low ones.
__device__ __forceinline__ uint32_t fixed_place(uint32_t row, uint32_t plane, uint32_t i) {
  const uint32_t step = i / 32, quad = i % 32 / 4, lane = row % 8 * 4 + quad % 4;
  return row / 8 * kFixedHalf + plane * kFixedPlane + step / 2 * 512 + lane * 16 + step % 2 * 8 + quad / 4 * 4 + i % 4;
}
// Returns the offset of a row's scale (bf16) in a tile's group.
__device__ __forceinline__ uint32_t fixed_scale_place(uint32_t row) {
  return row / 8 * kFixedHalf + 2 * kFixedPlane + row % 8 * 2;
}

// Writes one lane's share of half a group (8 rows) at upload. There are 8 parts of 32 lanes each: part = plane * 4 +
// pair. `rows` points to the group of row 0 in the file's layout, and row r begins r * pitch bytes further. Rows from
// n_rows on are written as zeros. Lanes 0 to 7 of part 0 also write the scales.
__device__ inline void pack_fixed_half(uint8_t* half, const uint8_t* rows, uint64_t pitch, uint32_t n_rows,
                                       uint32_t part, uint32_t lane) {
  const uint32_t row = lane / 4, plane = part / 4, pair = part % 4;
  const uint8_t* digits = rows + row * pitch + plane * 256 + pair * 64 + lane % 4 * 4;
  uint32_t words[4] = {};
  for (uint32_t j = 0; j < 4; ++j)
    for (uint32_t i = 0; i < 4 && row < n_rows; ++i) words[j] |= static_cast<uint32_t>(digits[j * 16 + i]) << (8 * i);
  reinterpret_cast<uint4*>(half + plane * kFixedPlane)[pair * 32 + lane] =
      make_uint4(words[0], words[1], words[2], words[3]);
  if (part > 0 || lane >= 8) return;
  uint8_t* scale = half + 2 * kFixedPlane + lane * 2;
  for (uint32_t i = 0; i < 2; ++i) scale[i] = lane < n_rows ? rows[lane * pitch + 512 + i] : 0;
}
// Writes one lane's share of a group of a whole tile (16 rows), part by part as pack_fixed_half() does for 8 rows.
__device__ inline void pack_fixed_rows(uint8_t* group, const uint8_t* rows, uint64_t pitch, uint32_t n_rows,
                                       uint32_t part, uint32_t lane) {
  pack_fixed_half(group, rows, pitch, n_rows, part, lane);
  pack_fixed_half(group + kFixedHalf, rows + 8 * pitch, pitch, n_rows > 8 ? n_rows - 8 : 0, part, lane);
}

// Returns value i of row r of a matrix as a float, as dequantize_row of kernels/cpu/quant/fixed16.cpp does. Rows behind
// the last whole tile are stored in the file's layout.
__device__ inline float fixed_weight(const uint8_t* w, uint32_t rows, uint32_t k, uint32_t r, uint32_t i) {
  const uint64_t row_bytes = static_cast<uint64_t>(k) / 256 * sizeof(BlockFixed16);
  const bool is_tile = r < rows / 16 * 16;
  const uint8_t* at = is_tile ? w + r / 16 * 16 * row_bytes + i / 256 * kFixedGroup
                              : w + r * row_bytes + i / 256 * sizeof(BlockFixed16);
  const auto digit = [&](uint32_t plane) {
    return static_cast<int8_t>(at[is_tile ? fixed_place(r % 16, plane, i % 256) : plane * 256 + i % 256]);
  };
  const uint8_t* scale = at + (is_tile ? fixed_scale_place(r % 16) : 512);
  const float d = bf16_to_f32(static_cast<uint16_t>(scale[0] | scale[1] << 8));
  return d * static_cast<float>(digit(0) * 256 + digit(1));
}

}  // namespace zinc_rt::cuda
