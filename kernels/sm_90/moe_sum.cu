// MOE_SUM: z[t] = the sum over a token's choices of weight_j * y[t][j], fma from 0 on; with a hidden row that is added
// to in place, the end of MOE_DOWN_ACC. Buffers: 0 y [n, k d], 1 ids, 2 weights, 3 expert_scale or null, 4 z or null, 5
// hidden or null. Symbols: n, d, k, e.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void moe_sum(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, d = args.dim(1), k = args.dim(2);
  if (t >= args.dim(0)) return;
  const float* y = args.buffer<const float>(0) + static_cast<uint64_t>(t) * k * d;
  const int32_t* ids = args.buffer<const int32_t>(1) + static_cast<uint64_t>(t) * k;
  const float *weights = args.buffer<const float>(2) + static_cast<uint64_t>(t) * k,
              *scale = args.buffer<const float>(3);
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < d; i += gridDim.y * blockDim.x) {
    float z = 0.0f;
    for (uint32_t j = 0; j < k; ++j) {
      float weight = weights[j];
      if (scale != nullptr) {
        const auto id = static_cast<uint32_t>(ids[j]);
        weight = id < args.symbols[3] ? weight * scale[id] : nan_value();
      }
      z = __fmaf_rn(weight, y[static_cast<uint64_t>(j) * d + i], z);
    }
    if (args.buffers[4] != nullptr) args.buffer<float>(4)[static_cast<uint64_t>(t) * d + i] = z;
    if (args.buffers[5] != nullptr) {
      float& hidden = args.buffer<float>(5)[static_cast<uint64_t>(t) * d + i];
      hidden = hidden + z;
    }
  }
}
