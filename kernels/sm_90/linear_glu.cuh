// Another x of a product of one token that its workgroups make themselves (linear_norm.cuh): GLU of rows of gate and
// up, then QUANTIZE. A warp has a group of 256, so that only short rows are made so; longer ones are left to a launch
// that makes them once. Of experts each choice has its row, and a workgroup makes one for each of its blocks.
#pragma once

#include "kernels/sm_90/linear_norm.cuh"

namespace zinc_rt::cuda {

// Rows of k values from row t on.
template <bool kBlocks256>
__device__ __forceinline__ Q8Rows rows_from(const Q8Rows& rows, uint32_t t, uint32_t k) {
  return {rows.qs + t * k, static_cast<uint8_t*>(rows.sums) + t * k / 8, rows.d + t * (k / (kBlocks256 ? 256 : 32))};
}

template <bool kBlocks256>
class GluRow {
 public:
  static constexpr bool kIsMade = true, kIsDense = false;

  __device__ __forceinline__ GluRow(const LinearArgs& args) : args_(args) {}

  // Of experts the i-th row is that of the workgroup's i-th block; the launch sees to it that it has no more.
  __device__ __forceinline__ uint32_t rows() const { return glu_rows(args_.k, args_.choices != 0); }

  // As NormedRow's.
  __device__ __forceinline__ void make(float*, const Q8Rows& to) {
    const uint32_t unit = threadIdx.x / 32, lane = threadIdx.x % 32, k = args_.k, n_groups = (k + 255) / 256,
                   row = unit / n_groups, g = unit % n_groups, block = blockIdx.x + row * gridDim.x,
                   item = block / args_.n_blocks;
    if (row < rows() && item < max(args_.choices, 1u)) {
      const uint64_t first = static_cast<uint64_t>(item) * k;
      Eight x = load_eight(static_cast<const float*>(args_.x) + first, g, k, lane);
      const Eight up = load_eight(args_.up + first, g, k, lane);
#pragma unroll
      for (int e = 0; e < 8; ++e) x.v[e] = activate(args_.act, x.v[e]) * up.v[e];
      const QuantizedEight q = quantize_eight<kBlocks256>(x);
      put_eight<kBlocks256>(q, rows_from<kBlocks256>(to, row, k), g, k, lane);
      if (block % args_.n_blocks == 0) {  // one workgroup an item
        const Q8Rows all = q8_rows(args_.glu_quantized, max(args_.choices, 1u), k);
        put_eight<kBlocks256>(q, rows_from<kBlocks256>(all, item, k), g, k, lane);
        store_eight(x, args_.glu + first, g, k, lane);
      }
    }
    __syncthreads();
  }

 private:
  const LinearArgs& args_;
};

}  // namespace zinc_rt::cuda
