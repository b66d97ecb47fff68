// Another x of a product of one row that its workgroups make themselves (linear_norm.cuh): GLU of rows of gate and up,
// then QUANTIZE. Up to a group of 256 a warp; longer rows are left to a launch that makes them once.
#pragma once

#include "kernels/sm_90/linear_norm.cuh"

namespace zinc_rt::cuda {

template <bool kBlocks256>
class GluRow {
 public:
  static constexpr bool kIsMade = true;

  __device__ __forceinline__ GluRow(const LinearArgs& args) : args_(args) {}

  // As NormedRow's.
  __device__ __forceinline__ void make(float*, const Q8Rows& to) {
    const uint32_t g = threadIdx.x / 32, lane = threadIdx.x % 32, k = args_.k;
    if (g < kWarps && g * 256 < k) {
      Eight x = load_eight(static_cast<const float*>(args_.x), g, k, lane);
      const Eight up = load_eight(args_.up, g, k, lane);
#pragma unroll
      for (int e = 0; e < 8; ++e) x.v[e] = activate(args_.act, x.v[e]) * up.v[e];
      quantize_eight<kBlocks256>(x, to, g, k, lane);
      if (blockIdx.x == 0) store_eight(x, args_.glu, g, k, lane);
    }
    __syncthreads();
    // The warps that have no group yet.
    if (blockIdx.x != 0 || g < kWarps) return;
    const uint32_t words = (kBlocks256 ? k + k / 8 + k / 64 : k + k / 4) / 4;
    for (uint32_t i = threadIdx.x - 32 * kWarps; i < words; i += blockDim.x - 32 * kWarps)
      static_cast<uint32_t*>(args_.glu_rows)[i] = reinterpret_cast<const uint32_t*>(to.qs)[i];
  }

 private:
  const LinearArgs& args_;
};
static_assert(kMostGlu == kWarps * 256);

}  // namespace zinc_rt::cuda
