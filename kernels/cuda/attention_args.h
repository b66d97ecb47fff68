// Attention: arguments and shapes. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/op_args.h"
#include "kernels/cuda/shared_memory.h"

namespace zinc_rt::cuda {

// Attention of a token with chunks of K and V in shared memory (flash_attn_staged.cu): threads of a workgroup, and the
// bytes of a chunk whose rows have room for `width` values. Rows of K lie 32 bytes further apart, so that the two rows
// that a warp reads at once are in different banks.
constexpr uint32_t kAttendThreads = 256, kAttendChunk = 128;
ZRT_CUDA_HD constexpr uint32_t attend_k_pitch(uint32_t width, uint32_t value_bytes) {
  return width * value_bytes + 32;
}
ZRT_CUDA_HD constexpr uint32_t attend_chunk_bytes(uint32_t width, uint32_t value_bytes) {
  return kAttendChunk * (attend_k_pitch(width, value_bytes) + width * value_bytes);
}

// Attention of a token of each slot that also does the RMS_NORM_FUSED_ROPE_KV_WRITE before it (token_rows.cuh): what
// that reads beside attention's operands. Norms may be null. What it writes of q is attention's q.
struct RopeArgs {
  Address<const float> q, k, v, q_norm, k_norm, table;
  uint32_t table_rows, n_rot, neox;
  float eps;
};
struct TokenArgs {
  OpArgs attention;
  RopeArgs rope;
};

// Attention of tiles of tokens (flash_attn_tile.cu): threads of a workgroup, its rows (tokens by heads), and the bytes
// of shared memory for weights, K and V of a chunk. Weights and K have room between rows, so that what is read or
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

// In steps of few tokens: the tokens from which on a tile is computed by flash_attn_runs.cu (a full tile always is),
// and the chunks that these tokens see at least. For less, a workgroup a token is faster. Then the tokens of such a
// step at most, and the workgroups of a multiprocessor.
constexpr uint32_t kAttendRunTokens = 4, kAttendRunChunks = 4, kAttendRunStep = 256;
constexpr uint32_t attend_tile_workgroups(uint32_t tile_bytes) {
  return tile_bytes <= shared_of(3) - 3 * kKilobyte ? 3 : 2;
}

// Attention over caches of integers. Of a token (flash_attn_integer.cu): threads of a workgroup, and bytes of shared
// memory for the digits of q and its scales, and where chunks are merged, for o, maximum and sum of each head.
constexpr uint32_t kAttendIntegerThreads = 128;
constexpr uint32_t attend_integer_bytes(uint32_t group, uint32_t head_dim, uint32_t v_head_dim, bool is_merged) {
  return (group + 3) / 4 * ((head_dim + 31) / 32 * 256 + 16) + (is_merged ? group * (v_head_dim + 2) * 4 : 0);
}
// Of runs of tokens (token_runs.cuh): the most columns of a workgroup, which are its tokens by its heads; the most tokens
// of a step; bytes that the kernels have besides, and more; over integers, bytes of shared memory for the digits of q and
// its scales.
constexpr uint32_t kAttendRunColumns = 32, kAttendIntegerRunStep = 128, kAttendRunShared = 27 * kKilobyte;
constexpr uint32_t attend_integer_run_bytes(uint32_t columns, uint32_t head_dim) {
  return (columns + 3) / 4 * ((head_dim + 31) / 32 * 256 + 16);
}
// Of tiles of tokens (flash_attn_integer_tile.cu): rows; bytes for K, V and the digits of q, and where rows are wide for
// the sums of values; bytes that the kernel has besides, and more; workgroups of a multiprocessor.
constexpr uint32_t kAttendIntegerRows = 64, kAttendIntegerMostWidth = 256, kAttendIntegerShared = 2560;
constexpr uint32_t attend_integer_tile_bytes(uint32_t width) {
  return 2 * kAttendChunk * width * 2 + kAttendIntegerRows * width * 2 +
         (width > 128 ? kAttendIntegerRows * width * 4 : 0);
}
constexpr uint32_t attend_integer_tile_workgroups(uint32_t width) {
  return width <= 64 ? 3 : width <= 128 ? 2 : 1;
}

// Attention over rotated caches (flash_attn_rotated.cu): threads of a workgroup, and bytes of shared memory for q and its
// scales, and where chunks are merged, for o, maximum and sum of each head.
constexpr uint32_t kAttendRotatedThreads = 128;
constexpr uint32_t attend_rotated_bytes(uint32_t group, uint32_t head_dim, uint32_t v_head_dim, bool is_merged) {
  return group * (head_dim + head_dim / 64 * 4) + (is_merged ? group * (v_head_dim + 2) * 4 : 0);
}

// The merge of chunks (flash_attn.cu): threads of a workgroup; records that come to shared memory at once, and how many
// times as many are on their way, on a GPU with much shared memory and on others; bytes of shared memory where a head
// has up to `chunks` chunks.
constexpr uint32_t kMergeThreads = 256, kMergeBatch = 16, kMergeDepth = 12, kMergeSmallDepth = 4;
ZRT_CUDA_HD constexpr uint32_t merge_bytes_of_warp(uint32_t chunks, uint32_t depth) {
  const uint32_t wanted = (chunks + kMergeBatch - 2) / kMergeBatch;
  return 32 * 16 + (wanted < depth ? wanted : depth) * kMergeBatch * 32 * 4;
}
constexpr uint32_t merge_bytes(uint32_t chunks, uint32_t depth) {
  return kMergeThreads / 32 * merge_bytes_of_warp(chunks, depth);
}

// Attention of arithmetic `fast` (flash_attn_mma.cu): threads of a workgroup, its rows, positions of a step of K and V,
// and the bytes of shared memory for q of the rows and for K and V of two steps, all f16. Rows lie an odd number of
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

}  // namespace zinc_rt::cuda
