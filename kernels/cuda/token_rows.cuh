// Computes a token's rows of q, K and V inside the attention kernel: RMS_NORM_FUSED_ROPE_KV_WRITE. This is used in
// steps in which each token is the only one of its slot. Each workgroup computes its own heads of q. The workgroup with
// the token's own chunk also computes K and V, so no workgroup waits for another's write to the cache.
// A warp computes a head of q or k; a thread computes a value of v.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/rope_head.cuh"

namespace zinc_rt::cuda {

// The rows of one token, as the threads of a workgroup compute them: call ask_norms(), ask_turns(), ask_v() as soon as
// their inputs are known, then make().
template <class Cell, int kSteps>
class TokenRows {
 public:
  __device__ __forceinline__ TokenRows(const RopeArgs& rope, const push::FlashAttn& c, uint32_t token)
      : rope_(rope), c_(c), token_(token), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}
  // Loads the weights of the norms. It may be called before the wait for inputs, because weights never change.
  __device__ __forceinline__ void ask_norms() {
    head_.ask_norm(warp_ == kKPlace ? rope_.k_norm : rope_.q_norm, c_.head_dim);
  }
  // Loads the cosines and sines of position pos. This table never changes either, but pos must be known.
  __device__ __forceinline__ void ask_turns(uint32_t pos) {
    head_.ask_turns(pos < rope_.table_rows, rope_.table + static_cast<uint64_t>(pos) * rope_.n_rot, rope_.n_rot);
  }
  // Loads this thread's value of v. Call it after the wait for inputs.
  __device__ __forceinline__ void ask_v(uint32_t kv_head) {
    kv_head_ = kv_head;
    const float* row = rope_.v + static_cast<uint64_t>(token_) * c_.n_kv_heads * c_.v_head_dim;
    v_ = threadIdx.x < c_.v_head_dim ? row[kv_head * c_.v_head_dim + threadIdx.x] : 0.0f;
  }

  // Where the rows are stored. Members that are null are not wanted.
  // - q: heads `first` to `end` - 1 of the kv head; head h begins at q + h * head_dim in shared memory, and is also
  //   stored in q_out
  // - k_row, v_row: the token's row of the tiles of K and V, if this workgroup has its chunk
  // - k_cell, v_cell: the token's cells of the cache
  // - scratch: 16 * kSteps floats of shared memory
  struct To {
    float *q, *q_out;
    uint32_t first, end;
    uint8_t *k_row, *v_row, *k_cell, *v_cell;
    float* scratch;
  };
  // Called by all warps. It does not end with a barrier.
  __device__ __forceinline__ void make(const To& to) {
    const uint32_t n_heads = to.end - to.first, d = c_.head_dim;
    const bool has_k = to.k_row != nullptr || to.k_cell != nullptr;
#pragma unroll 1
    for (uint32_t place = warp_; place == warp_ || place <= n_heads; place += kPlaces) {
      if (place != warp_) head_.ask_norm(rope_.q_norm, d);
      const bool is_k = place == kKPlace;
      const uint32_t own = place < kKPlace ? place : place - 1, h = to.first + own;
      if (is_k ? !has_k : own >= n_heads) continue;
      const uint32_t group = c_.n_heads / c_.n_kv_heads;
      const uint64_t of_token = static_cast<uint64_t>(token_) * (is_k ? c_.n_kv_heads : c_.n_heads);
      head_.ask_values((is_k ? rope_.k : rope_.q) + (of_token + (is_k ? kv_head_ : kv_head_ * group + h)) * d, d);
      float* y = is_k ? to.scratch : to.q + h * d;
      head_.make(y, rope_.eps, rope_.neox != 0);
      if (is_k)
        keep_k(to, y);
      else if (to.q_out != nullptr)
        for (uint32_t i = lane_; i < d; i += 32) to.q_out[h * d + i] = y[i];
    }
    if (threadIdx.x >= c_.v_head_dim) return;
    if (to.v_row != nullptr) store_cell(&v_, to.v_row, threadIdx.x, 1, kType, 0, 1);
    if (to.v_cell != nullptr) store_cell(&v_, to.v_cell, kv_head_ * c_.v_head_dim + threadIdx.x, 1, kType, 0, 1);
  }

 private:
  static constexpr uint32_t kType = Cell::kBytes == 2 ? kCacheF16 : kCacheF32;
  // Warps take the heads of q in turn. The head of K is the first work of the last warp (place kKPlace).
  static constexpr uint32_t kPlaces = kAttendThreads / 32, kKPlace = kPlaces - 1;

  // Stores K. A row of the tile has room for 16 * kSteps values; values behind the head's end become zeros.
  __device__ __forceinline__ void keep_k(const To& to, float* y) const {
    const uint32_t d = c_.head_dim;
    if (to.k_cell != nullptr) store_cell(y, to.k_cell, kv_head_ * d, d, kType, lane_, 32);
    if (to.k_row == nullptr) return;
    for (uint32_t i = d + lane_; i < 16 * kSteps; i += 32) y[i] = 0.0f;
    __syncwarp();
    store_cell(y, to.k_row, 0, 16 * kSteps, kType, lane_, 32);
  }

  const RopeArgs& rope_;
  const push::FlashAttn& c_;
  uint32_t token_, warp_, lane_, kv_head_;
  float v_;
  WarpHead<kSteps> head_;
};

}  // namespace zinc_rt::cuda
