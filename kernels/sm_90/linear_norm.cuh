// The x of a product of one row that its workgroups make themselves, each all of it: RMS_NORM of a row of floats, then
// QUANTIZE, in the orders of kernels/cpu/rms_norm.cpp and quantize.cpp. Half warps sum up the squares of a group of 256
// each; then warps have the same groups again, in which a lane has the values of its words of an integer product.
#pragma once

#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

struct Eight {
  float v[8];
};
// Of group g of a row of k values: four of the first and four of the last 16 of the lane's 32; zeros from k on.
__device__ __forceinline__ Eight load_eight(const float* row, uint32_t g, uint32_t k, uint32_t lane) {
  const uint32_t at = g * 256 + lane / 4 * 32 + lane % 4 * 4;
  if (at >= k) return Eight{};
  const float4 a = *reinterpret_cast<const float4*>(row + at), b = *reinterpret_cast<const float4*>(row + at + 16);
  return Eight{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
}

// A group's values to row 0 of `to`.
template <bool kBlocks256>
__device__ __forceinline__ void quantize_eight(const Eight& x, const Q8Rows& to, uint32_t g, uint32_t k,
                                               uint32_t lane) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  uint32_t most = 0;  // as bits, in which infinities and NaN are the largest
#pragma unroll
  for (int i = 0; i < 8; ++i) most = max(most, __float_as_uint(x.v[i]) & 0x7FFFFFFFu);
  if constexpr (kBlocks256) {
    most = __reduce_max_sync(kAll, most);
  } else {
    most = max(most, __shfl_xor_sync(kAll, most, 1));
    most = max(most, __shfl_xor_sync(kAll, most, 2));
  }
  const float amax = __uint_as_float(most);
  const bool is_usable = amax >= 0x1p-100f && amax <= 0x1p120f;
  // Where d is NaN, codes and sums are of no account: what they are multiplied by is NaN.
  const float safe = is_usable ? amax : 1.0f, inverse = is_usable ? exact::div(127.0f, safe) : 0.0f,
              other = amax <= 0x1p120f ? 0.0f : nan_value(), d = is_usable ? exact::div(safe, 127.0f) : other;
  uint32_t words[2];
  int sums[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t q[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) q[i] = __float_as_uint(x.v[4 * half + i] * inverse + exact::kRound);
    words[half] = __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
    sums[half] = __dp4a(static_cast<int>(words[half]), 0x01010101, 0);
  }
  // q8a256: two sums of 16 as the halves of a word; the lower one, where negative, has taken 1 off the upper one.
  uint32_t sum = static_cast<uint32_t>(kBlocks256 ? sums[0] + sums[1] * 65536 : sums[0] + sums[1]);
  sum += __shfl_xor_sync(kAll, sum, 1);
  sum += __shfl_xor_sync(kAll, sum, 2);
  if (kBlocks256) sum += (sum & 0x8000u) << 1;
  const uint32_t step = g * 8 + lane / 4;
  if (step * 32 >= k) return;
  reinterpret_cast<uint2*>(to.qs)[step * 4 + lane % 4] = uint2{words[0], words[1]};
  if (lane % 4 == 0) static_cast<uint32_t*>(to.sums)[step] = sum;
  if (kBlocks256 ? lane == 0 : lane % 4 == 0) to.d[kBlocks256 ? g : step] = d;
}

template <bool kBlocks256>
class NormedRow {
 public:
  // Before the inputs are there: weights of the norm never change.
  __device__ __forceinline__ NormedRow(const LinearArgs& args)
      : args_(args), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {
    if (warp_ >= kWarps) return;
#pragma unroll
    for (uint32_t i = 0; i < kHeld; ++i) scale_[i] = load_eight(args.norm_w, warp_ + i * kWarps, args.k, lane_);
  }

  // By all threads of the workgroup, which are together again at its end. sums: kMostNormed / 256 floats of shared
  // memory.
  __device__ __forceinline__ void make(float* sums, const Q8Rows& to) {
    const float* row = static_cast<const float*>(args_.x);
    const uint32_t k = args_.k, n_groups = (k + 255) / 256;
    Eight x[kHeld] = {};
    if (warp_ < kWarps) {
#pragma unroll
      for (uint32_t i = 0; i < kHeld; ++i) x[i] = load_eight(row, warp_ + i * kWarps, k, lane_);
      // Groups after the last, up to a whole round, add nothing.
#pragma unroll 1
      for (uint32_t g = threadIdx.x / 16; g / kRound * kRound < n_groups; g += kRound) {
        const uint32_t own = min(g, n_groups - 1);
        const float sum = square_group(row + own * 256, min(k - own * 256, 256u));
        if (threadIdx.x % 16 == 0) sums[g] = g < n_groups ? sum : 0.0f;
      }
    }
    __syncthreads();
    if (warp_ < kWarps) {
      const float factor = exact::rsqrt(__fmaf_rn(sum_up(sums, n_groups), args_.inverse_k, args_.norm_eps));
#pragma unroll 1
      for (uint32_t first = warp_; first < n_groups; first += kHeld * kWarps) {
#pragma unroll
        for (uint32_t i = 0; i < kHeld; ++i) {
          const uint32_t g = first + i * kWarps;
          if (g >= n_groups) break;
          if (first != warp_) x[i] = load_eight(row, g, k, lane_), scale_[i] = load_eight(args_.norm_w, g, k, lane_);
#pragma unroll
          for (int e = 0; e < 8; ++e) x[i].v[e] = x[i].v[e] * factor * scale_[i].v[e];
          quantize_eight<kBlocks256>(x[i], to, g, k, lane_);
        }
      }
    }
    __syncthreads();
  }

 private:
  static constexpr uint32_t kHeld = 2,  // groups of a warp that are asked for before the first is used
      kRound = 2 * kWarps;              // groups that are squared at once

  // In order.
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
  uint32_t warp_, lane_;
  Eight scale_[kHeld] = {};
};

}  // namespace zinc_rt::cuda
