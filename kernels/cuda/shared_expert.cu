// The end of SHARED_EXPERT: hidden = hidden + y, y times sigmoid(gate_inp . x) where there is a gate_inp. A workgroup a
// token. gate_inp may be null. Shared: d / 256 floats.
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
