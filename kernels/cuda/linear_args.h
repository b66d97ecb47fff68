// Matrix products: the kernels' arguments, the layout of quantized activations, and the constants from which the
// planner computes a launch's threads and shared memory. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/dtypes.h"
#include "kernels/cuda/op_args.h"
#include "kernels/cuda/shared_memory.h"

namespace zinc_rt::cuda {

// The layout of n quantized rows of k values: first the codes of all rows, then the sums of all rows, then the scales
// of all rows. It takes as many bytes as the blocks of kernels/common/act_q8.h.
// - codes of q8a32 and q8a256: in each block of 32, value i is at byte word_of(i / 4) * 4 + i % 4. So the two words
//   that a lane passes to an integer product are adjacent, and it loads both at once
// - sums: an int16 per 16 values (q8a256) or an int32 per 32 values (q8a32), as products with minimums and offsets need
//   them
// - q16a256, whose codes have two digits: each group of 256 values of a row has 256 bytes of high digits, then 256
//   bytes of low ones, both in the order of k. There are no sums
struct ActRows {
  int8_t* qs;
  void* sums;
  float* d;
};
// Return the addresses of the codes, sums and scales of n rows of k values at `base`.
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
// Returns the index, among the 8 words of a block of 32 values, of the word with the values 4 * quad to 4 * quad + 3.
ZRT_CUDA_HD uint32_t word_of(uint32_t quad) {
  return quad < 4 ? 2 * quad : 2 * (quad - 4) + 1;
}

// One of up to three weight matrices that a launch multiplies by, side by side (such as q, k and v). With experts, the
// matrices of all experts follow each other at a fixed distance (LinearArgs::expert_pitch).
struct LinearPart {
  Address<const void> w;
  Address<const float> bias;  // null: no bias
  Address<float> y;           // y[row of x * pitch + row of W]
  // first_block: the part's first block in the grid; kAbsent: this part does not exist
  uint32_t rows, pitch, first_block;
};
// The arguments of a product. The planner sets the members that do not apply to 0 or null.
struct LinearArgs {
  LinearPart parts[3];
  uint32_t n_blocks;     // the number of blocks of rows of W of all parts together
  uint32_t rows_symbol;  // number of rows of x, or kSymbolicTokens or kSymbolicOutputs
  uint32_t k;
  uint32_t choices;  // experts: the choices (chosen experts) per token; 0: a dense product
  Address<const void> x;
  Address<const StepHeader> step;
  Address<float> residual;  // if not null, the product is also added to this: residual += y
  // Not 0: the launch before this one is a product with the same inputs. That product let this launch start only after
  // it had waited for the inputs. So this launch need not wait before it reads them.
  uint32_t is_beside;
  // The following members are used with experts. x_rows is the number of rows of x per token: 1 (all choices of a token
  // share a row) or `choices`. ids: the chosen expert of each choice.
  Address<const int32_t> ids;
  // null: each choice is an item of its own; else [n_items], then (expert, first, count) per item
  Address<const int32_t> items;
  // The choices sorted by expert; an item's rows are order[first] to order[first + count - 1].
  Address<const int32_t> order;
  uint32_t x_rows, n_experts;
  // Not 0: ids, items and order may be read before the wait. An earlier product waited for them before it let the next
  // launch start.
  uint32_t knows_choices;
  uint64_t expert_pitch[3];
  // If the product itself normalizes the row of x (RMS_NORM of one row of floats): the weights of the norm, and where
  // each workgroup keeps its quantized row (normed_bytes per workgroup). normed is null if that is shared memory.
  Address<const float> norm_w;
  Address<uint8_t> normed;
  float norm_eps, inverse_k;
  uint32_t block_rows, sharers;  // shape of float_columns.cuh: rows of W per block, and warps that share a group of k
  // If x is floats that the product itself quantizes (one row, or with experts one row per choice): the memory to which
  // it also writes the quantized row.
  Address<void> quantized;
  // If not null, parts[0] is the gate matrix and parts[1] the up matrix of a GLU, with equally many rows of the same
  // type. The product writes act(gate) * up here, in the layout of both y.
  Address<float> glu;
  uint32_t act;
};
// The arguments of linear_mixed.cu, which multiplies by matrices of two types: the first n_first workgroups compute
// of[0], the others of[1].
struct MixedArgs {
  LinearArgs of[2];
  uint32_t n_first;
};
// The arguments of linear_4_norm, the product of a float matrix and one row that the kernel normalizes first. The
// kernel also writes the normalized row, as floats and quantized, to those of the last four members that are not null,
// because other launches read it.
struct NormedArgs {
  LinearArgs linear;
  Address<float> floats;
  Address<void> q8a32, q8a256, q16a256;
};
// Returns the bytes of the memory that a workgroup needs for a row that it normalizes and quantizes. They suffice also
// for the sums of the row's groups, and are rounded up so that each workgroup's memory is aligned.
ZRT_CUDA_HD constexpr uint32_t normed_bytes(uint32_t k, ActType type) {
  return (k + (type == kQ8A32 ? k / 4 : (type == kQ8A256 ? k / 8 : k) + k / 64) + 127) / 128 * 128;
}
constexpr uint32_t kMostNormed = 320 * 256;

// The product with few rows of x (linear.cuh). A workgroup has 8 warps that multiply and a few that add up
// (linear_adders). Its shared memory holds:
// - the sums v of one group per multiplying warp, twice (one is written while the other is read): 20 floats per tile
//   and row of x
// - per multiplying warp, a ring of linear_depth groups of W of a block, which is `tiles` tiles
// column_tiles: tiles of 8 rows of x; 0 means one row. Three workgroups fit on a multiprocessor if a block is one tile
// and there are up to 8 rows of x, else two.
constexpr uint32_t linear_adders(uint32_t column_tiles) {
  return column_tiles < 2 ? 1 : column_tiles;
}
constexpr uint32_t linear_threads(uint32_t column_tiles) {
  return 32 * (8 + linear_adders(column_tiles));
}
constexpr uint32_t linear_workgroups(uint32_t tiles, uint32_t column_tiles) {  // workgroups per multiprocessor
  return tiles == 1 && column_tiles < 2 ? 3 : 2;
}
// Returns the bytes of the group sums v in shared memory.
constexpr uint32_t linear_v_bytes(uint32_t tiles, uint32_t column_tiles) {
  return 2 * 8 * tiles * (column_tiles == 0 ? 1 : column_tiles * 8) * 20 * 4;
}
// Returns the number of groups in a warp's ring. tile_bytes: bytes of a group of a tile of W.
constexpr uint32_t linear_depth(uint32_t tiles, uint32_t column_tiles, uint32_t tile_bytes) {
  const uint32_t most = shared_of(linear_workgroups(tiles, column_tiles)) - kKilobyte;
  const uint32_t depth = (most - linear_v_bytes(tiles, column_tiles)) / (8 * tiles * tile_bytes);
  // With one row, deeper rings would take the memory that workgroups of the next launch need to begin.
  const uint32_t enough = column_tiles == 0 ? 2 : 4;
  return depth < 2 ? 2 : depth > enough ? enough : depth;
}
// Returns the shared memory of a workgroup: the group sums v, and the rings of the eight warps.
constexpr uint32_t linear_shared_bytes(uint32_t tiles, uint32_t column_tiles, uint32_t tile_bytes) {
  return linear_v_bytes(tiles, column_tiles) + 8 * linear_depth(tiles, column_tiles, tile_bytes) * tiles * tile_bytes;
}
// The most shared memory with which that many workgroups still fit.
constexpr uint32_t linear_most_shared(uint32_t tiles, uint32_t column_tiles) {
  return shared_of(linear_workgroups(tiles, column_tiles));
}
// Bytes of scratch memory in which a warp keeps the scales and sums of its columns of x, for a group of a format with
// blocks of 32: 16 bytes per two columns and step.
ZRT_CUDA_HD constexpr uint32_t column_scratch_bytes(uint32_t column_tiles) {
  return column_tiles * 8 * 4 * 16;
}

// The shape of linear_by_warp.cuh, which computes the same for experts' items with up to 8 rows of x, each warp by
// itself. 8 warps have a ring of some groups each. Three workgroups share a multiprocessor; they leave a fourth of its
// shared memory to the L1 cache, which x is read through.
constexpr uint32_t kByWarpColumns = 8, kByWarpThreads = 256, kByWarpWorkgroups = 3;
// Returns the number of groups in a warp's ring.
constexpr uint32_t by_warp_depth(uint32_t tile_bytes) {
  const uint32_t depth = shared_of(kByWarpWorkgroups + 1) / (8 * tile_bytes);
  return depth < 2 ? 2 : depth > 4 ? 4 : depth;
}
// Returns the shared memory of a workgroup. is_block_32: the format has blocks of 32, for which each warp has scratch
// memory.
constexpr uint32_t by_warp_shared_bytes(uint32_t tile_bytes, bool is_block_32) {
  return 8 * (by_warp_depth(tile_bytes) * tile_bytes + (is_block_32 ? column_scratch_bytes(1) : 0));
}

// The products of many rows of x (linear_tile.cuh). A workgroup computes 128 rows of W by 128 of x, or 32 by 64. tiles:
// tiles of 16 rows of W. columns: rows of x. Each stage of shared memory holds one group of 256 values of k: the rows
// of W, the rows of x (kTileXPitch bytes each), the sums of x (32 bytes per row), and its scales (one per row, or one
// per block of 32).
struct TileShape {
  uint32_t tiles, columns, threads;
};
constexpr TileShape kLargeTile{8, 128, 512}, kFewWarpsTile{8, 128, 256}, kSmallTile{2, 64, 256};
// The layout of a row of x in a stage, for codes of two digits (q16a256): the high digits at byte 0, the low digits at
// byte kTileXLow. That distance makes eight lanes, which read both digits of four rows, use all banks. The row's scale
// is stored separately.
constexpr uint32_t kTileXPitch = 288, kTileXLow = 272, kTileXPitch16 = kTileXLow + 256;
// Returns the bytes of a stage. group_bytes: bytes of a group of one row of W.
constexpr uint32_t tile_stage_bytes(uint32_t tiles, uint32_t columns, uint32_t group_bytes, ActType type) {
  return tiles * 16 * group_bytes +
         columns * (type == kQ16A256 ? kTileXPitch16 + 4 : kTileXPitch + 32 + (type == kQ8A32 ? 32 : 4));
}
// Returns the number of stages in shared memory, for one workgroup per multiprocessor with large tiles and three with
// small ones.
constexpr uint32_t tile_stages(uint32_t tiles, uint32_t stage_bytes) {
  const uint32_t most = shared_of(tiles == kLargeTile.tiles ? 1 : 3) - kKilobyte;
  return 3 * stage_bytes <= most ? 3 : 2;
}

// Products of float matrices. A workgroup of float_linear.cuh computes kFloatRows rows of W by kFloatColumns rows of x.
// float_few.cuh, which has the same number of rows of W, is used for up to kLeastColumns rows of x.
constexpr uint32_t kFloatRows = 8, kFloatColumns = 8, kLeastColumns = 4;
// The product of a float matrix with several rows of x (float_columns.cuh), by 8 warps. A round is the rows of W that a
// warp multiplies at once; each warp loads kColumnsDepth rounds ahead. A round has 32 group sums v, and the next
// round's begin kColumnsPitch floats further, so that writing by rows and reading by columns both avoid bank conflicts.
// Shared memory holds 256 values of each column for each warp, y, the sums v of 8 groups twice, and pointers to the
// columns' rows.
constexpr uint32_t kColumnsThreads = 256, kColumnsDepth = 2, kColumnsPitch = 33;
// The shape of a kernel of float_columns.cuh that multiplies `columns` rows of x.
struct FloatColumnsShape {
  uint32_t columns;

  // The two half warps either compute the same columns (halves() == 1) or half of the columns each. In the second case
  // the second half's columns are shifted by 16 floats, so that both halves use different banks.
  ZRT_CUDA_HD constexpr uint32_t halves() const { return columns == 16 ? 2 : 1; }
  // Returns the rows of W in a round.
  ZRT_CUDA_HD constexpr uint32_t round() const { return 32 / columns; }
  // Returns the index of a column's first value among a warp's floats of x.
  ZRT_CUDA_HD constexpr uint32_t x_place(uint32_t column) const {
    return column * 256 + (halves() == 2 ? column / (columns / 2) * 16 : 0);
  }
  ZRT_CUDA_HD constexpr uint32_t x_floats() const { return columns * 256 + (halves() == 2 ? 16 : 0); }
  // Returns the bytes of shared memory of a workgroup. sharers: warps that share a group of k.
  constexpr uint32_t shared_bytes(uint32_t block_rows, uint32_t sharers) const {
    const uint32_t n_v = block_rows / round() * kColumnsPitch;
    return (8 * x_floats() + (n_v + 1) / 2 * 2 + 2 * (8 / sharers) * n_v) * 4 + columns * 8;
  }
};

}  // namespace zinc_rt::cuda
