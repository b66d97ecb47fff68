// Matrix products: arguments, shapes of launches, and the memory of activations. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/dtypes.h"
#include "kernels/cuda/op_args.h"
#include "kernels/cuda/shared_memory.h"

namespace zinc_rt::cuda {

// Quantized activations of n rows of k values: first the values, then the sums, then the scales of all rows. That is as
// many bytes as the blocks of kernels/common/act_q8.h take. In a block of 32, value i lies at word_of(i / 4) * 4 + i %
// 4, so that a lane of an integer matrix product loads its two words at once. Sums: int16 of 16 values (q8a256), int32
// of 32 values (q8a32). Codes of two digits (q16a256) have no sums: of each group of a row first 256 high digits, then
// 256 low ones, in the order of k.
struct ActRows {
  int8_t* qs;
  void* sums;
  float* d;
};
ZRT_CUDA_HD ActRows q8_rows(void* base, uint64_t n, uint64_t k) {
  int8_t* qs = static_cast<int8_t*>(base);
  return ActRows{qs, qs + n * k, reinterpret_cast<float*>(qs + n * k + n * k / 8)};
}
ZRT_CUDA_HD ActRows q16_rows(void* base, uint64_t n, uint64_t k) {
  int8_t* qs = static_cast<int8_t*>(base);
  return ActRows{qs, nullptr, reinterpret_cast<float*>(qs + 2 * n * k)};
}
ZRT_CUDA_HD ActRows act_rows(ActType type, void* base, uint64_t n, uint64_t k) {
  return type == kQ16A256 ? q16_rows(base, n, k) : q8_rows(base, n, k);
}
ZRT_CUDA_HD uint32_t word_of(uint32_t quad) {
  return quad < 4 ? 2 * quad : 2 * (quad - 4) + 1;
}

// A matrix product with up to three weight matrices side by side (q, k, v), or with the experts that rows have chosen.
struct LinearPart {
  Address<const void> w;
  Address<const float> bias;          // null: none
  Address<float> y;                   // y[row of x * pitch + row of w]
  uint32_t rows, pitch, first_block;  // kAbsent: no part
};
struct LinearArgs {
  LinearPart parts[3];
  uint32_t n_blocks;     // blocks of rows of W of all parts
  uint32_t rows_symbol;  // rows of x: a number, kSymbolicTokens or kSymbolicOutputs
  uint32_t k;
  uint32_t choices;  // experts: of a token; else 0
  Address<const void> x;
  Address<const StepHeader> step;
  Address<float> residual;  // not null: residual += y
  // Not 0: the launch before this one is a product with the same inputs, and it let this one start only after it had
  // waited for them. So the inputs are there.
  uint32_t is_beside;
  // Experts. x_rows is 1 or `choices`: rows of x of a token. ids: the chosen experts, one a choice.
  Address<const int32_t> ids;
  Address<const int32_t> items;  // null: an item is a choice; else [n_items], then (expert, first, count) each
  Address<const int32_t> order;  // choices by expert, for items
  uint32_t x_rows, n_experts;
  // Not 0: a product that waited for them before it let the next launch start has read ids, items and order.
  uint32_t knows_choices;
  uint64_t expert_pitch[3];
  // RMS_NORM, where the product makes x of a row of floats itself: normed_bytes a workgroup, or null: shared memory.
  Address<const float> norm_w;
  Address<uint8_t> normed;
  float norm_eps, inverse_k;
  uint32_t block_rows, sharers;  // float_columns.cuh
  // Where x is one row of floats (of experts: one a choice) that the product quantizes itself: where it leaves the
  // quantized row.
  Address<void> quantized;
  // Where parts[0] is gate and parts[1] up, as many rows of one type: act(gate) * up, laid out as y of both.
  Address<float> glu;
  uint32_t act;
};
// linear_mixed.cu: of matrices of two types, the first of n_first workgroups.
struct MixedArgs {
  LinearArgs of[2];
  uint32_t n_first;
};
// The product of a float matrix and one row that is normalized first (linear_4_norm). The normalized row besides, as
// floats and quantized, for others that read it. Null: nobody does.
struct NormedArgs {
  LinearArgs linear;
  Address<float> floats;
  Address<void> q8a32, q8a256, q16a256;
};
// Bytes of a quantized row, rounded up so that each workgroup's is aligned, and at least the sums of its groups.
ZRT_CUDA_HD constexpr uint32_t normed_bytes(uint32_t k, ActType type) {
  return (k + (type == kQ8A32 ? k / 4 : (type == kQ8A256 ? k / 8 : k) + k / 64) + 127) / 128 * 128;
}
constexpr uint32_t kMostNormed = 320 * 256;

// The product of few rows of x (linear.cuh): 8 warps, each with room for some groups of a block of `tiles` tiles of W,
// and warps that add up. In front of the groups lies v of a group a warp, twice, 20 floats a tile and row of x.
// column_tiles: tiles of 8 rows of x; 0: one row. A multiprocessor has 228 KB, and a workgroup takes 1 KB more than it
// asks for: three workgroups fit of a tile by up to 8 rows of x, two of more.
constexpr uint32_t linear_adders(uint32_t column_tiles) {
  return column_tiles < 2 ? 1 : column_tiles;
}
constexpr uint32_t linear_threads(uint32_t column_tiles) {
  return 32 * (8 + linear_adders(column_tiles));
}
constexpr uint32_t linear_workgroups(uint32_t tiles, uint32_t column_tiles) {  // of a multiprocessor
  return tiles == 1 && column_tiles < 2 ? 3 : 2;
}
constexpr uint32_t linear_v_bytes(uint32_t tiles, uint32_t column_tiles) {
  return 2 * 8 * tiles * (column_tiles == 0 ? 1 : column_tiles * 8) * 20 * 4;
}
constexpr uint32_t linear_depth(uint32_t tiles, uint32_t column_tiles, uint32_t tile_bytes) {
  const uint32_t most = shared_of(linear_workgroups(tiles, column_tiles)) - kKilobyte;
  const uint32_t depth = (most - linear_v_bytes(tiles, column_tiles)) / (8 * tiles * tile_bytes);
  const uint32_t enough = column_tiles == 0 ? 2 : 4;  // of one row, more leave the next launch no place to begin in
  return depth < 2 ? 2 : depth > enough ? enough : depth;
}
constexpr uint32_t linear_shared_bytes(uint32_t tiles, uint32_t column_tiles, uint32_t tile_bytes) {
  return linear_v_bytes(tiles, column_tiles) + 8 * linear_depth(tiles, column_tiles, tile_bytes) * tiles * tile_bytes;
}
constexpr uint32_t linear_most_shared(uint32_t tiles, uint32_t column_tiles) {  // with which as many fit
  return shared_of(linear_workgroups(tiles, column_tiles));
}
// Where a warp keeps the scales and sums of its x for a group of blocks of 32: 16 bytes for two columns of a step.
ZRT_CUDA_HD constexpr uint32_t column_scratch_bytes(uint32_t column_tiles) {
  return column_tiles * 8 * 4 * 16;
}

// The same of items of experts by warps of their own (linear_by_warp.cuh): 8 warps with room for some groups each,
// three workgroups a multiprocessor, which leave a fourth of its memory to the L1.
constexpr uint32_t kByWarpColumns = 8, kByWarpThreads = 256, kByWarpWorkgroups = 3;
constexpr uint32_t by_warp_depth(uint32_t tile_bytes) {
  const uint32_t depth = shared_of(kByWarpWorkgroups + 1) / (8 * tile_bytes);
  return depth < 2 ? 2 : depth > 4 ? 4 : depth;
}
constexpr uint32_t by_warp_shared_bytes(uint32_t tile_bytes, bool is_block_32) {
  return 8 * (by_warp_depth(tile_bytes) * tile_bytes + (is_block_32 ? column_scratch_bytes(1) : 0));
}

// The products of many rows of x (linear_tile.cuh): workgroups of 128 rows of W by 128 of x, and of 32 by 64. tiles: of
// 16 rows of W. columns: rows of x. Shared memory has groups of 256 of both, one a stage: W, x (kTileXPitch bytes a
// row), the sums of x (32 bytes a row), its scales (one a row, or one a block of 32).
struct TileShape {
  uint32_t tiles, columns, threads;
};
constexpr TileShape kLargeTile{8, 128, 512}, kFewWarpsTile{8, 128, 256}, kSmallTile{2, 64, 256};
// Of codes of two digits a row has the high ones and kTileXLow bytes further the low ones, so that eight lanes that
// read both of four rows use all banks, and its scale.
constexpr uint32_t kTileXPitch = 288, kTileXLow = 272, kTileXPitch16 = kTileXLow + 256;
constexpr uint32_t tile_stage_bytes(uint32_t tiles, uint32_t columns, uint32_t group_bytes, ActType type) {
  return tiles * 16 * group_bytes +
         columns * (type == kQ16A256 ? kTileXPitch16 + 4 : kTileXPitch + 32 + (type == kQ8A32 ? 32 : 4));
}
// A multiprocessor has 228 KB, of which a workgroup takes 1 KB more than it asks for: one of large tiles, three of
// small ones.
constexpr uint32_t tile_stages(uint32_t tiles, uint32_t stage_bytes) {
  const uint32_t most = shared_of(tiles == kLargeTile.tiles ? 1 : 3) - kKilobyte;
  return 3 * stage_bytes <= most ? 3 : 2;
}

// Products of float matrices. Rows of W and of x of a workgroup of float_linear.cuh, whose rows of W float_few.cuh has
// too for up to kLeastColumns rows of x.
constexpr uint32_t kFloatRows = 8, kFloatColumns = 8, kLeastColumns = 4;
// Several rows of x (float_columns.cuh), by 8 warps, each with the next kColumnsDepth rounds of W loaded ahead. A round
// is the rows of W that a warp multiplies at once: 32 values of v, kColumnsPitch floats apart from the next round's so
// that rows and columns are read as they are written. Shared memory has 256 values of each column for each warp, y, v
// of 8 groups twice, and where the columns' rows begin.
constexpr uint32_t kColumnsThreads = 256, kColumnsDepth = 2, kColumnsPitch = 33;
struct FloatColumnsShape {
  uint32_t columns;

  // Half warps have the same columns, or half of them each, laid out so that they use different banks.
  ZRT_CUDA_HD constexpr uint32_t halves() const { return columns == 16 ? 2 : 1; }
  ZRT_CUDA_HD constexpr uint32_t round() const { return 32 / columns; }
  ZRT_CUDA_HD constexpr uint32_t x_place(uint32_t column) const {
    return column * 256 + (halves() == 2 ? column / (columns / 2) * 16 : 0);
  }
  ZRT_CUDA_HD constexpr uint32_t x_floats() const { return columns * 256 + (halves() == 2 ? 16 : 0); }
  constexpr uint32_t shared_bytes(uint32_t block_rows, uint32_t sharers) const {
    const uint32_t n_v = block_rows / round() * kColumnsPitch;
    return (8 * x_floats() + (n_v + 1) / 2 * 2 + 2 * (8 / sharers) * n_v) * 4 + columns * 8;
  }
};

}  // namespace zinc_rt::cuda
