// The RMS_NORM and ROPE of one head of q or k by a warp (WarpHead) or a half warp (HalfWarpHead), for heads of up to 16
// * kSteps values, in the orders of kernels/cpu/rms_norm.cpp and rope.cpp. The ask_*() functions start the loads of the
// inputs; a caller calls each of them as soon as it knows the address. make() uses the loaded values.
#pragma once

#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

// Computes one head by a warp. In what follows, l() is the lane of the order of sums, GPU lane % 16.
template <int kSteps>
class WarpHead {
 public:
  // w: the n weights of the norm, or null if there is no norm. They may be loaded before the wait for inputs, because
  // no kernel writes them.
  __device__ __forceinline__ void ask_norm(const float* w, uint32_t n) {
    has_norm_ = w != nullptr;
#pragma unroll
    for (uint32_t i = 0; i < kSteps; ++i) scale_[i] = has_norm_ && i * 16 + l() < n ? w[i * 16 + l()] : 1.0f;
  }
  // Each half warp loads all n values of the head, so that both can compute the sum of squares.
  __device__ __forceinline__ void ask_values(const float* x, uint32_t n) {
    n_ = n;
#pragma unroll
    for (uint32_t i = 0; i < kSteps; ++i) v_[i] = i * 16 + l() < n ? x[i * 16 + l()] : 0.0f;
  }
  // table_row: n_rot cosines and sines of the token's position. If has_row is false, the position is outside the table
  // and the head becomes NaN.
  __device__ __forceinline__ void ask_turns(bool has_row, const float* table_row, uint32_t n_rot) {
    has_row_ = has_row;
    half_ = n_rot / 2;
#pragma unroll
    for (uint32_t j = 0; j < kSteps / 4; ++j)
      if (has_row && j * 32 + lane() < half_) turns_[j] = reinterpret_cast<const float2*>(table_row)[j * 32 + lane()];
  }

  // Computes the head into y, n floats of shared memory. All lanes of the warp may read it afterwards.
  __device__ __forceinline__ void make(float* y, float eps, bool neox) {
    if (has_norm_) {
      float sum = 0.0f;
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i)
        if (i * 16 + l() < n_) sum = __fmaf_rn(v_[i], v_[i], sum);
      sum = fold_half_warp(sum);
      const float factor = exact::rsqrt(__fmaf_rn(sum, 1.0f / static_cast<float>(n_), eps));
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) v_[i] = v_[i] * factor * scale_[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < kSteps; ++i)
      if (i % 2 == lane() / 16 && i * 16 + l() < n_) y[i * 16 + l()] = has_row_ ? v_[i] : nan_value();
    __syncwarp();
#pragma unroll
    for (uint32_t j = 0; j < kSteps / 4; ++j) {
      const uint32_t i = j * 32 + lane(), low = neox ? i : 2 * i, high = neox ? i + half_ : 2 * i + 1;
      if (!has_row_ || i >= half_) continue;
      const float a = y[low], b = y[high];
      y[low] = __fmaf_rn(-b, turns_[j].y, a * turns_[j].x);
      y[high] = __fmaf_rn(b, turns_[j].x, a * turns_[j].y);
    }
    __syncwarp();
  }

 private:
  __device__ __forceinline__ static uint32_t lane() { return threadIdx.x % 32; }
  __device__ __forceinline__ static uint32_t l() { return threadIdx.x % 16; }

  float v_[kSteps], scale_[kSteps];
  float2 turns_[kSteps / 4];  // cosine and sine
  uint32_t n_, half_;
  bool has_norm_, has_row_;
};

// HalfWarpHead computes one head by a half warp, so that a warp computes two heads at once. The arguments of the
// ask_*() functions may differ between the halves of a warp. A half without a head passes n = 0.
template <int kSteps>
class HalfWarpHead {
 public:
  __device__ __forceinline__ void ask_norm(const float* w, uint32_t n) {
    has_norm_ = w != nullptr;
#pragma unroll
    for (uint32_t i = 0; i < kSteps; ++i) scale_[i] = has_norm_ && i * 16 + l() < n ? w[i * 16 + l()] : 1.0f;
  }
  __device__ __forceinline__ void ask_values(const float* x, uint32_t n) {
    n_ = n;
#pragma unroll
    for (uint32_t i = 0; i < kSteps; ++i) v_[i] = i * 16 + l() < n ? x[i * 16 + l()] : 0.0f;
  }
  __device__ __forceinline__ void ask_turns(bool has_row, const float* table_row, uint32_t n_rot) {
    has_row_ = has_row;
    half_ = has_row ? n_rot / 2 : 0;
#pragma unroll
    for (uint32_t j = 0; j < kSteps / 2; ++j)
      if (j * 16 + l() < half_) turns_[j] = reinterpret_cast<const float2*>(table_row)[j * 16 + l()];
  }
  // Called by the whole warp, which may read both heads afterwards. y: n floats of shared memory, separate for each
  // half.
  __device__ __forceinline__ void make(float* y, float eps, bool neox) {
    if (has_norm_) {
      float sum = 0.0f;
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i)
        if (i * 16 + l() < n_) sum = __fmaf_rn(v_[i], v_[i], sum);
      sum = fold_half_warp(sum);
      const float factor = exact::rsqrt(__fmaf_rn(sum, 1.0f / static_cast<float>(n_), eps));
#pragma unroll
      for (uint32_t i = 0; i < kSteps; ++i) v_[i] = v_[i] * factor * scale_[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < kSteps; ++i)
      if (i * 16 + l() < n_) y[i * 16 + l()] = has_row_ ? v_[i] : nan_value();
    __syncwarp();
#pragma unroll
    for (uint32_t j = 0; j < kSteps / 2; ++j) {
      const uint32_t i = j * 16 + l(), low = neox ? i : 2 * i, high = neox ? i + half_ : 2 * i + 1;
      if (i >= half_) continue;
      const float a = y[low], b = y[high];
      y[low] = __fmaf_rn(-b, turns_[j].y, a * turns_[j].x);
      y[high] = __fmaf_rn(b, turns_[j].x, a * turns_[j].y);
    }
    __syncwarp();
  }

 private:
  __device__ __forceinline__ static uint32_t l() { return threadIdx.x % 16; }

  float v_[kSteps], scale_[kSteps];
  float2 turns_[kSteps / 2];  // cosine and sine
  uint32_t n_, half_;
  bool has_norm_, has_row_;
};

}  // namespace zinc_rt::cuda
