// The rows of a token as attention wants them, made by the workgroups of attention, where each token of a step is the
// only one of its slot. Each workgroup makes its heads of q, and the one that has the token's own chunk also makes K
// and V there, so that these do not come from another workgroup's writes. That is RMS_NORM_FUSED_ROPE_KV_WRITE: a warp
// makes a head of q or k, a thread a value of v.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/rope_head.cuh"

namespace zinc_rt::cuda {

template <class Cell, int kSteps>
class TokenRows {
 public:
  __device__ __forceinline__ TokenRows(const RopeArgs& rope, const push::FlashAttn& c, uint32_t token)
      : rope_(rope), c_(c), token_(token), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}
  // Before the inputs are there: weights never change.
  __device__ __forceinline__ void ask_norms() {
    head_.ask_norm(warp_ == kKPlace ? rope_.k_norm : rope_.q_norm, c_.head_dim);
  }
  // The table of angles never changes either. pos: the token's position, which must be known.
  __device__ __forceinline__ void ask_turns(uint32_t pos) {
    head_.ask_turns(pos < rope_.table_rows, rope_.table + static_cast<uint64_t>(pos) * rope_.n_rot, rope_.n_rot);
  }
  // Once the inputs are there.
  __device__ __forceinline__ void ask_v(uint32_t kv_head) {
    kv_head_ = kv_head;
    const float* row = rope_.v + static_cast<uint64_t>(token_) * c_.n_kv_heads * c_.v_head_dim;
    v_ = threadIdx.x < c_.v_head_dim ? row[kv_head * c_.v_head_dim + threadIdx.x] : 0.0f;
  }

  // Where rows go. q: heads first to end of the kv head, head h at h * head_dim of shared memory and, if not null, of
  // q_out. K and V: rows of the tiles, where the token is in the chunk that is there; cells of the cache. Null: not
  // wanted. scratch: 16 kSteps floats of shared memory.
  struct To {
    float *q, *q_out;
    uint32_t first, end;
    uint8_t *k_row, *v_row, *k_cell, *v_cell;
    float* scratch;
  };
  // All warps, which need not be together at its end.
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
  // Warps take heads of q in turn; the head of K comes first for the last warp.
  static constexpr uint32_t kPlaces = kAttendThreads / 32, kKPlace = kPlaces - 1;

  // A tile has room for wider heads; what is left over becomes zeros.
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
