// The last step of SHARED_EXPERT: hidden += y * sigmoid(gate_inp . x), or hidden += y if gate_inp is null. y is the
// shared expert's output, x the layer's input row.
// Grid: one workgroup per token. Each half warp computes the dot product of every n-th group of 256 values, in the
// order of docs/arithmetic.md, rule 4. Shared memory: one float per group of 256, d / 256 of them rounded up.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void shared_expert(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(float, v);
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, d = args.dim(symbol::Row::width);
  if (t >= args.dim(symbol::Row::rows)) return;
  const uint64_t row = static_cast<uint64_t>(t) * d;
  const float *x = args.buffer<const float>(binding::SharedExpert::x) + row,
              *w = args.buffer<const float>(binding::SharedExpert::gate_inp);
  float factor = 1.0f;
  if (w != nullptr) {
    for (uint32_t g = threadIdx.x / 16; g < (d + 255) / 256; g += blockDim.x / 16) {
      float lane = 0.0f;
      for (uint32_t i = g * 256 + threadIdx.x % 16; i < min(d, g * 256 + 256); i += 16)
        lane = __fmaf_rn(w[i], x[i], lane);
      lane = fold_half_warp(lane);
      if (threadIdx.x % 16 == 0) v[g] = lane;
    }
    __syncthreads();
    float sum = 0.0f;
    for (uint32_t g = 0; g < (d + 255) / 256; ++g) sum = sum + v[g];
    factor = exact::sigmoid(sum);
  }
  for (uint32_t i = threadIdx.x; i < d; i += blockDim.x) {
    const float y = args.buffer<const float>(binding::SharedExpert::y)[row + i];
    float& hidden = args.buffer<float>(binding::SharedExpert::hidden)[row + i];
    hidden = hidden + (w != nullptr ? y * factor : y);
  }
}
