// LAYER_NORM: y = (x - mean) * r * w + b over whole rows; b may be null. y may be the same memory as x. The order of sums
// is that of kernels/cpu/layer_norm.cpp. Grid: one workgroup per row.
// The mean is one sum of 16 lanes over the whole row, so a half warp computes it alone, from shared memory that all
// threads fill. The squares are summed by groups of 256 values, which all half warps share.
// Shared memory: kLayerNormPiece values of the row, then a float per group of 256 values.
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/norm_args.h"

using namespace zinc_rt::cuda;

extern "C" __global__ void layer_norm(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, shared);
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::Row::rows)) return;
  const uint32_t d = args.dim(symbol::Row::width), n_groups = (d + 255) / 256;
  const uint64_t at = static_cast<uint64_t>(blockIdx.x) * d;
  const float *x = args.buffer<const float>(binding::LayerNorm::x) + at,
              *w = args.buffer<const float>(binding::LayerNorm::w),
              *b = args.buffer<const float>(binding::LayerNorm::b);
  float *y = args.buffer<float>(binding::LayerNorm::y) + at, *piece = shared, *sums = shared + kLayerNormPiece;
  const float inverse = 1.0f / static_cast<float>(d);

  float lane = 0.0f;
  for (uint32_t first = 0; first < d; first += kLayerNormPiece) {
    const uint32_t n = min(kLayerNormPiece, d - first);
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) piece[i] = x[first + i];
    __syncthreads();
    if (threadIdx.x < 16) {
#pragma unroll 16
      for (uint32_t i = threadIdx.x; i < n; i += 16) lane = lane + piece[i];
    }
    __syncthreads();
  }
  if (threadIdx.x < 16) {
    const float sum = fold_half_warp(lane);
    if (threadIdx.x == 0) piece[0] = sum * inverse;
  }
  __syncthreads();
  const float mean = piece[0];
  for (uint32_t g = threadIdx.x / 16; g < n_groups; g += blockDim.x / 16) {
    LaneOfGroup of = load_lane_of_group(x + g * 256, min(256u, d - g * 256));
#pragma unroll
    for (float& v : of.v) v = v - mean;
    const float squares = sum_of_squares(of);
    if (threadIdx.x % 16 == 0) sums[g] = squares;
  }
  __syncthreads();
  float squares = 0.0f;
  for (uint32_t g = 0; g < n_groups; ++g) squares = squares + sums[g];
  const float r = exact::rsqrt(__fmaf_rn(squares, inverse, args.constants<push::LayerNorm>().eps));
  for (uint32_t i = threadIdx.x; i < d; i += blockDim.x) {
    const float scaled = (x[i] - mean) * r;
    y[i] = b != nullptr ? __fmaf_rn(scaled, w[i], b[i]) : scaled * w[i];
  }
}
