// Attention over rotated caches: shapes and bytes of shared memory beside those of attention_args.h. Shared by host and
// device; POD, C++17.
#pragma once

#include "kernels/cuda/attention_args.h"

namespace zinc_rt::cuda {

// Of a token (flash_attn_rotated.cu): heads that share a pass over K and V; bytes between the codes of two tokens'
// values, an odd number of vectors of 16 bytes, so that eight in turn are in different banks; bytes of a chunk's values
// with their scales, of which there are two beside the codes of q, whose heads are whole passes.
constexpr uint32_t kAttendRotatedHeads = 8;
ZRT_CUDA_HD constexpr uint32_t attend_rotated_value_pitch(uint32_t v_head_dim) {
  return v_head_dim / 2 + 16;
}
ZRT_CUDA_HD constexpr uint32_t attend_rotated_value_bytes(uint32_t v_head_dim) {
  return kAttendChunk * (attend_rotated_value_pitch(v_head_dim) + v_head_dim / 64 * 2);
}
constexpr uint32_t attend_rotated_token_bytes(uint32_t group, uint32_t head_dim, uint32_t v_head_dim, bool is_merged) {
  const uint32_t heads = (group + kAttendRotatedHeads - 1) / kAttendRotatedHeads * kAttendRotatedHeads;
  return 2 * attend_rotated_value_bytes(v_head_dim) + attend_rotated_bytes(heads, head_dim, v_head_dim, is_merged);
}

// Of runs of tokens (flash_attn_rotated_runs.cu): bytes of a chunk's values, of the digits of weights, and of the codes
// of q with their scales.
constexpr uint32_t attend_rotated_run_bytes(uint32_t columns, uint32_t head_dim, uint32_t v_head_dim) {
  const uint32_t whole = (columns + kAttendRotatedHeads - 1) / kAttendRotatedHeads * kAttendRotatedHeads;
  return attend_rotated_value_bytes(v_head_dim) + v_head_dim / 64 * kAttendRunColumns * 256 +
         attend_rotated_bytes(whole, head_dim, v_head_dim, false);
}

// Of tiles of tokens (flash_attn_rotated_tile.cu): bytes for K and V as products want them, their codes as they come
// from the cache but for keys of eight bits, codes of q, and where rows are wide the sums of values; bytes besides, and
// more.
constexpr uint32_t kAttendRotatedShared = 9216;
constexpr uint32_t attend_rotated_tile_bytes(bool is_r8, uint32_t width) {
  return 2 * kAttendChunk * width + (is_r8 ? 1 : 2) * kAttendChunk * width / 2 + kAttendIntegerRows * width +
         (width > 128 ? kAttendIntegerRows * width * 4 : 0);
}

}  // namespace zinc_rt::cuda
