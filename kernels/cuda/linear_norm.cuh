// The RMS_NORM and QUANTIZE of the one row of x of a product. Each workgroup of the product computes the whole row for
// itself, in the orders of kernels/cpu/rms_norm.cpp and quantize.cpp. First half warps compute the sum of squares of a
// group of 256 values each; then warps normalize and quantize a group each, and a lane has the values that fill its
// words of an operand (Eight in device.cuh).
#pragma once

#include "kernels/cuda/linear_job.cuh"

namespace zinc_rt::cuda {

// kHolds: a warp loads the values that it will quantize together with those that it squares, which needs registers for
// both. Else it loads them after the sum is known.
template <ActType kType, bool kHolds>
class NormedRow {
 public:
  // Loads the weights of the norm. It may be called before the inputs are ready, because weights never change.
  __device__ __forceinline__ NormedRow(const LinearArgs& args) : args_(args), warp_(threadIdx.x / 32) {
    if (warp_ < kWarps) load_eights(args.norm_w, scale_);
  }

  // Computes the row, called by all threads of the workgroup; ends with a barrier. sums: scratch memory of kMostNormed
  // / 256 floats. after(): called by the multiplying warps once their loads of the row are issued. store(values, at):
  // called for each lane's eight quantized values, of which the first is value `at` of the row.
  template <class Store, class After>
  __device__ __forceinline__ void make(float* sums, const Store& store, const After& after) {
    const float* row = static_cast<const float*>(args_.x);
    const uint32_t k = args_.k, n_groups = (k + 255) / 256;
    Eight x[kHeld];
    if (warp_ < kWarps) {
      const auto load = [&](uint32_t g) {
        const uint32_t own = min(g, n_groups - 1);
        return load_lane_of_group(row + own * 256, min(k - own * 256, 256u));
      };
      uint32_t g = threadIdx.x / 16;
      LaneOfGroup values = load(g);
      if constexpr (kHolds) load_eights(row, x);
      after();
      // The number of groups is rounded up to whole rounds; groups behind the last add 0.
#pragma unroll 1
      for (;;) {
        const float sum = sum_of_squares(values);
        if (threadIdx.x % 16 == 0) sums[g] = g < n_groups ? sum : 0.0f;
        g += kRound;
        if (g / kRound * kRound >= n_groups) break;
        values = load(g);
      }
    }
    __syncthreads();
    if (warp_ < kWarps) {
      if constexpr (!kHolds) load_eights(row, x);
      const float factor = exact::rsqrt(__fmaf_rn(sum_up(sums, n_groups), args_.inverse_k, args_.norm_eps));
#pragma unroll 1
      for (uint32_t first = warp_; first < n_groups; first += kHeld * kWarps) {
#pragma unroll
        for (uint32_t i = 0; i < kHeld; ++i) {
          const uint32_t g = first + i * kWarps;
          if (g >= n_groups) break;
          if (first != warp_) x[i] = load_eight(row, at_of(g), k), scale_[i] = load_eight(args_.norm_w, at_of(g), k);
#pragma unroll
          for (int e = 0; e < 8; ++e) x[i].v[e] = x[i].v[e] * factor * scale_[i].v[e];
          store(quantized<kType>(x[i]), at_of(g));
        }
      }
    }
    __syncthreads();
  }

 private:
  static constexpr uint32_t kHeld = 2,  // groups that a warp loads before it uses the first
      kRound = 2 * kWarps;              // groups that are squared side by side

  // Returns the index in the row of the lane's first value of group g.
  __device__ __forceinline__ static uint32_t at_of(uint32_t g) { return g * 256 + first_of_eight(); }
  // Loads the lane's values of the warp's first kHeld groups.
  __device__ __forceinline__ void load_eights(const float* from, Eight (&to)[kHeld]) const {
#pragma unroll
    for (uint32_t i = 0; i < kHeld; ++i) to[i] = load_eight(from, at_of(warp_ + i * kWarps), args_.k);
  }
  // Returns the sum over all groups, added in order.
  __device__ __forceinline__ static float sum_up(const float* sums, uint32_t n_groups) {
    float sum = 0.0f;
#pragma unroll 1
    for (uint32_t first = 0; first < n_groups; first += kRound) {
      float4 v[kRound / 4];
#pragma unroll
      for (int i = 0; i < kRound / 4; ++i) v[i] = *reinterpret_cast<const float4*>(sums + first + 4 * i);
#pragma unroll
      for (const float4& four : v) sum = sum + four.x, sum = sum + four.y, sum = sum + four.z, sum = sum + four.w;
    }
    return sum;
  }

  const LinearArgs& args_;
  uint32_t warp_;
  Eight scale_[kHeld] = {};
};

}  // namespace zinc_rt::cuda
