// What host and device agree on for the kernels of sm_90: the arguments of kernels that are not an op's own
// (op_args.h), passed by value, shapes of launches, and the memory of activations. POD, C++17.
#pragma once

#include <stdint.h>

#include "kernels/sm_90/op_args.h"

namespace zinc_rt::cuda {

// Quantized activations of n rows of k values: the values, then the sums, then the scales of all rows. That is as many
// bytes as the blocks of kernels/common/act_q8.h take. In 32 values, value i lies at word_of(i / 4) * 4 + i % 4, so
// that a lane of an integer matrix product reads its two words at once. Sums: q8a256: int16 of 16 values; q8a32: int32
// of 32 values.
struct Q8Rows {
  int8_t* qs;
  void* sums;
  float* d;
};
#if defined(__CUDACC__)
#define ZRT_CUDA_HD __host__ __device__ inline
#else
#define ZRT_CUDA_HD inline
#endif
ZRT_CUDA_HD Q8Rows q8_rows(void* base, uint64_t n, uint64_t k) {
  int8_t* qs = static_cast<int8_t*>(base);
  return Q8Rows{qs, qs + n * k, reinterpret_cast<float*>(qs + n * k + n * k / 8)};
}
ZRT_CUDA_HD uint32_t word_of(uint32_t quad) {
  return quad < 4 ? 2 * quad : 2 * (quad - 4) + 1;
}

// A matrix product with up to three weight matrices side by side (q, k, v), or with the experts' that rows have chosen.
struct LinearPart {
  const void* w;
  const float* bias;                  // null: none
  float* y;                           // y[row of x * pitch + row of w]
  uint32_t rows, pitch, first_block;  // kAbsent: no part
};
struct LinearArgs {
  LinearPart parts[3];
  uint32_t n_blocks;     // blocks of rows of W of all parts
  uint32_t rows_symbol;  // rows of x: a number, kSymbolicTokens or kSymbolicOutputs
  uint32_t k;
  uint32_t choices;  // experts: of a token; else 0
  const void* x;
  const StepHeader* step;
  float* residual;  // not null: residual += y
  // Not 0: the launch before this one is a product that waits for its inputs and only then lets this one start, and
  // whose inputs are this one's too. So they are there.
  uint32_t is_beside;
  // Experts. x_rows is 1 or `choices`: rows of x of a token. ids: the chosen experts, one a choice.
  const int32_t* ids;
  const int32_t* items;  // null: an item is a choice; else [n_items], then (expert, first, count) each
  const int32_t* order;  // choices by expert, for items
  uint32_t x_rows, n_experts;
  // Not 0: a product that waited for them before it let the next launch start has read ids, items and order.
  uint32_t knows_choices;
  uint64_t expert_pitch[3];
  // RMS_NORM, where the product makes x of a row of floats itself: normed_bytes a workgroup, or null: shared memory.
  const float* norm_w;
  uint8_t* normed;
  float norm_eps, inverse_k;
  uint32_t block_rows, sharers;  // float_columns.cuh
  // Where x is one row (of experts one a choice) of floats that the product quantizes itself: what QUANTIZE would
  // leave.
  void* quantized;
  // Where parts[0] is gate and parts[1] up, as many rows of one type: act(gate) * up, laid out as y of both.
  float* glu;
  uint32_t act;
};
// linear_mixed.cu: of matrices of two types, the first of n_first workgroups.
struct MixedArgs {
  LinearArgs of[2];
  uint32_t n_first;
};
// The product of a float matrix of one row that is normalized first (linear_4_norm): the row besides as those want it
// who read it too, as floats and quantized. Null: nobody.
struct NormedArgs {
  LinearArgs linear;
  float* floats;
  void *q8a32, *q8a256;
};
// A normalized row in blocks of 32 or 256, so that each workgroup's is aligned; as long as there is room for the sums
// of its groups.
ZRT_CUDA_HD constexpr uint32_t normed_bytes(uint32_t k, uint32_t block) {
  return (k + (block == 32 ? k / 4 : k / 8 + k / 64) + 127) / 128 * 128;
}
constexpr uint32_t kMostNormed = 320 * 256;

// The product of few rows of x (linear.cuh): 8 warps, each with room for some groups of a block of `tiles` tiles of W,
// and warps that add up; before the groups, twice, v of a group a warp, 20 floats a tile and row of x. column_tiles: of
// 8 rows of x; 0: one row. A multiprocessor has 228 KB, of which a workgroup takes 1 KB more than it asks for: three
// fit of up to 8 rows of x by a tile, two of more.
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
  const uint32_t most = linear_workgroups(tiles, column_tiles) == 3 ? 74u << 10 : 112u << 10;
  const uint32_t depth = (most - linear_v_bytes(tiles, column_tiles)) / (8 * tiles * tile_bytes);
  const uint32_t enough = column_tiles == 0 ? 2 : 4;  // of one row more leave the next launch no place to begin in
  return depth < 2 ? 2 : depth > enough ? enough : depth;
}
constexpr uint32_t linear_shared_bytes(uint32_t tiles, uint32_t column_tiles, uint32_t tile_bytes) {
  return linear_v_bytes(tiles, column_tiles) + 8 * linear_depth(tiles, column_tiles, tile_bytes) * tiles * tile_bytes;
}
constexpr uint32_t linear_most_shared(uint32_t tiles, uint32_t column_tiles) {  // with which as many fit
  return (228u << 10) / linear_workgroups(tiles, column_tiles) - (1u << 10);
}
// Where a warp has its x's scales and sums of a group of blocks of 32: 16 bytes for two columns of a step.
ZRT_CUDA_HD constexpr uint32_t column_scratch_bytes(uint32_t column_tiles) {
  return column_tiles * 8 * 4 * 16;
}

// The same of items of experts by warps of their own (linear_by_warp.cuh): 8 warps with room for some groups each,
// three workgroups a multiprocessor, which leave a fourth of its memory to the L1.
constexpr uint32_t kByWarpColumns = 8, kByWarpThreads = 256, kByWarpWorkgroups = 3;
constexpr uint32_t by_warp_depth(uint32_t tile_bytes) {
  const uint32_t depth = (56u << 10) / (8 * tile_bytes);
  return depth < 2 ? 2 : depth > 4 ? 4 : depth;
}
constexpr uint32_t by_warp_shared_bytes(uint32_t tile_bytes, bool is_block_32) {
  return 8 * (by_warp_depth(tile_bytes) * tile_bytes + (is_block_32 ? column_scratch_bytes(1) : 0));
}

// The products of many rows of x (linear_tile.cuh), 128 rows of W by 128 of x a workgroup, and 32 by 64: tiles of 16
// rows of W, rows of x, threads. Shared memory has groups of 256 of both, one a stage: W, x (kTileXPitch bytes a row),
// its sums (32 bytes a row), its scales (one a row, or one a block of 32).
struct TileShape {
  uint32_t tiles, columns, threads;
};
constexpr TileShape kLargeTile{8, 128, 512}, kFewWarpsTile{8, 128, 256}, kSmallTile{2, 64, 256};
constexpr uint32_t kTileXPitch = 288;
constexpr uint32_t tile_stage_bytes(uint32_t tiles, uint32_t columns, uint32_t group_bytes, bool is_block_32) {
  return tiles * 16 * group_bytes + columns * (kTileXPitch + 32 + (is_block_32 ? 32 : 4));
}
// A multiprocessor has 228 KB, of which a workgroup takes 1 KB more than it asks for: one of large tiles, three of
// small ones.
constexpr uint32_t tile_stages(uint32_t tiles, uint32_t stage_bytes) {
  const uint32_t most = tiles == kLargeTile.tiles ? 226u << 10 : 74u << 10;
  return 3 * stage_bytes <= most ? 3 : 2;
}

// The products of arithmetic `fast` on tensor cores (linear_wgmma.cuh). Rows of x are bf16 in tiles of kWgmmaTile rows:
// of 64 values of k the rows of a tile lie one after another, 128 bytes each, of which piece p of 16 bytes lies at
// place p ^ row % 8, as the instruction reads shared memory. In k, values lie in the order in which a lane has those of
// W (bf16_rows.cu).
constexpr uint32_t kWgmmaTile = 128, kWgmmaValues = 64, kWgmmaBlockBytes = kWgmmaTile * kWgmmaValues * 2;
ZRT_CUDA_HD constexpr uint64_t wgmma_tile_bytes(uint32_t k) {
  return static_cast<uint64_t>((k + kWgmmaValues - 1) / kWgmmaValues) * kWgmmaBlockBytes;
}
constexpr uint32_t kBf16RowsThreads = 128;  // of a workgroup of bf16_rows.cu, a step of 32 values each
struct Bf16RowsArgs {
  const void* x;
  void* to;
  const StepHeader* step;
  uint32_t rows_symbol, k;
  // Experts: a tile an item (LinearArgs).
  uint32_t choices, x_rows;
  const int32_t *items, *order;
};
// A workgroup: some warpgroups, each with 64 rows of W and all `columns` rows of x, and one that copies to shared
// memory: two stages of groups of 256 values of W, or four of 64 of float weights, and as many blocks of x as there is
// room for.
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
  const uint32_t left = (wgmma_workgroups(shape) == 2 ? 111u << 10 : 225u << 10) -
                        wgmma_w_stages(group_bytes) * wgmma_rows(shape) * group_bytes;
  return left / wgmma_x_bytes(shape) < 8 ? left / wgmma_x_bytes(shape) : 8;
}
// Blocks of x begin at a multiple of 1,024 bytes; barriers come last.
constexpr uint32_t wgmma_shared_bytes(const WgmmaShape& shape, uint32_t group_bytes) {
  return 1024 + wgmma_x_stages(shape, group_bytes) * wgmma_x_bytes(shape) +
         wgmma_w_stages(group_bytes) * wgmma_rows(shape) * group_bytes + 256;
}

// The products of some rows of x by digits of sub-scales (linear_digits.cuh): rows of x; warpgroups that share out
// stages of k; groups of k that a stage has; one more warpgroup adds, one copies. An instruction has 64 rows of W:
// those of several groups of 64 / groups rows, where blocks of 64 would leave multiprocessors idle. Shared memory:
// stages, each the groups' x and the rows' W, beginning at multiples of 1,024 bytes; v of a stage a warpgroup,
// digits_pitch floats a row of x, so that no two of a store are in one bank; barriers.
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
// A group of x: twice 128 bytes a row, the values in order, of which piece p of 16 lies at place p ^ row % 8, as the
// instruction reads shared memory; then 16 sums a row as f16, then the scales.
ZRT_CUDA_HD constexpr uint32_t digits_x_bytes(uint32_t columns) {
  return columns * (256 + 32 + 4);
}
// What makes it (digit_rows.cu): tiles of `columns` rows of x, 8 to 128, one after another.
struct DigitRowsArgs {
  const void* x;
  void* to;
  const StepHeader* step;
  uint32_t rows_symbol, k, columns;
  // Experts: a tile an item (LinearArgs); items null: none.
  uint32_t choices, x_rows;
  const int32_t *items, *order;
};
constexpr uint32_t kItemRowsThreads = 256;  // of a workgroup that makes an item's, a step of 32 values each
constexpr uint32_t digits_stage_bytes(const DigitsShape& shape, uint32_t group_bytes) {
  return (shape.groups * digits_x_bytes(shape.columns) + 64 * group_bytes + 1023) / 1024 * 1024;
}
constexpr uint32_t digits_plane_bytes(const DigitsShape& shape) {
  return shape.groups * shape.columns * (digits_pitch(shape.groups) + 1) * 4;
}
constexpr uint32_t digits_stages(const DigitsShape& shape, uint32_t group_bytes) {
  const uint32_t n = ((225u << 10) - shape.splits * digits_plane_bytes(shape)) / digits_stage_bytes(shape, group_bytes);
  return n < 12 ? n : 12;
}
constexpr uint32_t digits_shared_bytes(const DigitsShape& shape, uint32_t group_bytes) {
  return 1024 + digits_stages(shape, group_bytes) * digits_stage_bytes(shape, group_bytes) +
         shape.splits * digits_plane_bytes(shape) + 256;
}

// Of many rows of x (linear_digits_tile.cuh): 128 rows of W by 128 of x, in stages of a group of 256 of both.
constexpr uint32_t kDigitsTile = 128, kDigitsTileThreads = 384;
constexpr uint32_t digits_tile_stage_bytes(uint32_t group_bytes) {
  return (digits_x_bytes(kDigitsTile) + kDigitsTile * group_bytes + 1023) / 1024 * 1024;
}
constexpr uint32_t digits_tile_stages(uint32_t group_bytes) {
  return (225u << 10) / digits_tile_stage_bytes(group_bytes);
}
constexpr uint32_t digits_tile_shared_bytes(uint32_t group_bytes) {
  return 1024 + digits_tile_stages(group_bytes) * digits_tile_stage_bytes(group_bytes) + 256;
}

// Attention of a token with chunks of K and V in shared memory (flash_attn_staged.cu): threads of a workgroup, and what
// a chunk takes where rows have room for `width` values. Those of K lie 32 bytes further apart, so that the two that a
// warp reads at once are in different banks.
constexpr uint32_t kAttendThreads = 256, kAttendChunk = 128;
ZRT_CUDA_HD constexpr uint32_t attend_k_pitch(uint32_t width, uint32_t value_bytes) {
  return width * value_bytes + 32;
}
ZRT_CUDA_HD constexpr uint32_t attend_chunk_bytes(uint32_t width, uint32_t value_bytes) {
  return kAttendChunk * (attend_k_pitch(width, value_bytes) + width * value_bytes);
}

// Products of float matrices. Rows of W and of x of a workgroup of float_linear.cuh, whose rows of W float_few.cuh has
// too for up to kLeastColumns rows of x.
constexpr uint32_t kFloatRows = 8, kFloatColumns = 8, kLeastColumns = 4;
// Several rows of x (float_columns.cuh), by 8 warps, each with the next kColumnsDepth rounds of W on their way. A round
// is the rows of W by which a warp multiplies at once: 32 values of v, kColumnsPitch floats apart from the next's so
// that rows and columns can be read as they are written. Shared memory has 256 values of each column for each warp,
// y, v of 8 groups twice, and where the columns' rows begin.
constexpr uint32_t kColumnsThreads = 256, kColumnsDepth = 2, kColumnsPitch = 33;
struct FloatColumnsShape {
  uint32_t columns;

  // Half warps have the same columns, or half of them each, which lie so that they meet in no bank.
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

// Attention of a token of each slot that also does the RMS_NORM_FUSED_ROPE_KV_WRITE before it (token_rows.cuh): what
// that reads beside attention's operands. Norms may be null. What it writes of q is attention's q.
struct RopeArgs {
  const float *q, *k, *v, *q_norm, *k_norm, *table;
  uint32_t table_rows, n_rot, neox;
  float eps;
};
struct TokenArgs {
  OpArgs attention;
  RopeArgs rope;
};

// Attention of tiles of tokens (flash_attn_tile.cu): threads of a workgroup, its rows (tokens by heads), and what it
// takes of shared memory: weights, K and V of a chunk. Weights and K have room between rows, so that what is read or
// written at once lies in different banks. Where K and V are large, V takes the place of K.
constexpr uint32_t kAttendTileThreads = 128, kAttendTilePitch = kAttendChunk + 8;
constexpr uint32_t attend_tile_rows(uint32_t width) {
  return width <= 128 ? 64 : 32;
}
constexpr bool attend_tile_has_both(uint32_t width, uint32_t value_bytes) {
  return width * value_bytes <= 256;
}
constexpr uint32_t attend_tile_k_pitch(uint32_t width, uint32_t value_bytes) {
  return width * value_bytes + 16;
}
constexpr uint32_t attend_tile_bytes(uint32_t width, uint32_t value_bytes) {
  return attend_tile_rows(width) * kAttendTilePitch * 4 +
         kAttendChunk * (attend_tile_k_pitch(width, value_bytes) +
                         (attend_tile_has_both(width, value_bytes) ? width * value_bytes : 0));
}

// In steps of few tokens: how many tokens a tile has that goes by flash_attn_runs.cu (or it is full), and how many
// chunks these see. For fewer a workgroup a token is faster. Tokens of a step at most, and workgroups of a
// multiprocessor.
constexpr uint32_t kAttendRunTokens = 4, kAttendRunChunks = 4, kAttendRunStep = 256;
constexpr uint32_t attend_tile_workgroups(uint32_t tile_bytes) {
  return tile_bytes <= 72u << 10 ? 3 : 2;
}

// Attention of arithmetic `fast` (flash_attn_mma.cu): threads of a workgroup, its rows, positions of a step of K and V,
// and what it takes of shared memory: q of the rows, and K and V of two steps, all f16. Rows lie an odd number of
// vectors of 16 bytes apart, so that eight in turn are in different banks.
constexpr uint32_t kAttendMmaThreads = 128;
constexpr uint32_t attend_mma_rows(uint32_t width) {
  return width <= 128 ? 128 : 64;
}
constexpr uint32_t attend_mma_step(uint32_t width) {
  return width <= 128 ? 64 : 32;
}
constexpr uint32_t attend_mma_pitch(uint32_t width) {
  return width * 2 + 16;
}
constexpr uint32_t attend_mma_bytes(uint32_t width) {
  return (attend_mma_rows(width) + 4 * attend_mma_step(width)) * attend_mma_pitch(width);
}
// Of a multiprocessor.
constexpr uint32_t attend_mma_workgroups(uint32_t width) {
  return width <= 64 ? 3 : 2;
}

// step_begin: copies what a step reads out of host memory, and takes the step's numbers from a ring of them.
struct CopyJob {
  const uint32_t* from;
  uint32_t* to;
  uint32_t words;
};
// Of a page table [slots, width]: for each token the pages up to its position.
struct PageJob {
  const int32_t *from, *pos, *slot;  // pos, slot: [room]
  int32_t* to;
  uint32_t width, room;
};
constexpr uint32_t kMaxCopyJobs = 24, kMaxPageJobs = 2, kHeaders = 256, kBeginThreads = 1024;
// Grid: a workgroup a copy, then one for each page table, at least one.
struct StepBeginArgs {
  const StepHeader* headers;  // [kHeaders], host memory
  StepHeader* header;
  const uint32_t* n_steps;  // device memory: steps so far
  uint32_t n_copies, n_pages;
  CopyJob copies[kMaxCopyJobs];
  PageJob pages[kMaxPageJobs];
};
struct StepEndArgs {
  uint32_t* n_steps;
  uint32_t* done;  // host memory: the steps that are complete
};

// repack: a matrix from a file's layout to that of the kernels (weights.cuh).
struct RepackArgs {
  const void* from;
  void* to;
  uint32_t rows, k;
  uint32_t matrix_rows;  // of all pieces of the matrix
};

}  // namespace zinc_rt::cuda
