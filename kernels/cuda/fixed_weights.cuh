// FIXED16 weights as kernels read them: the group of a tile of 16 rows by 256 of k (weights.cuh) is two halves of 8
// rows, each its plane of high digits, its plane of low ones and its scales. A plane is four pairs of steps of 32
// values, each lane by lane of an mma: 16 bytes of row lane / 4, four values of each step from lane % 4 * 4 on and four
// 16 further. So 16 bytes of the same place of both halves are the rows of an operand, and so are those of both planes.
#pragma once

#include "kernels/common/quant_blocks.h"
#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kFixedPlane = 8 * 256, kFixedHalf = 2 * kFixedPlane + 16, kFixedGroup = 2 * kFixedHalf;
static_assert(kFixedGroup == 16 * sizeof(BlockFixed16), "a tile takes the room of its rows");

// Where a group of a tile has a digit of value i of row `row`; plane: 0 for the high digits, 1 for the low ones.
__device__ __forceinline__ uint32_t fixed_place(uint32_t row, uint32_t plane, uint32_t i) {
  const uint32_t step = i / 32, quad = i % 32 / 4, lane = row % 8 * 4 + quad % 4;
  return row / 8 * kFixedHalf + plane * kFixedPlane + step / 2 * 512 + lane * 16 + step % 2 * 8 + quad / 4 * 4 + i % 4;
}
__device__ __forceinline__ uint32_t fixed_scale_place(uint32_t row) {
  return row / 8 * kFixedHalf + 2 * kFixedPlane + row % 8 * 2;
}

// A lane's part of a half of a group, from rows that lie as in the file, of which row 0 begins the group at `rows` and
// the next `pitch` bytes after it. There are 8 parts. Rows from n_rows on are zeros.
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
__device__ inline void pack_fixed_rows(uint8_t* group, const uint8_t* rows, uint64_t pitch, uint32_t n_rows,
                                       uint32_t part, uint32_t lane) {
  pack_fixed_half(group, rows, pitch, n_rows, part, lane);
  pack_fixed_half(group + kFixedHalf, rows + 8 * pitch, pitch, n_rows > 8 ? n_rows - 8 : 0, part, lane);
}

// Value i of row r of a matrix, as dequantize_row of kernels/cpu/quant/fixed16.cpp makes it.
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
