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
    constexpr uint32_t kAhead = 8;  // choices that are asked for before the first is added
    for (uint32_t first = 0; first < k; first += kAhead) {
      float weight[kAhead], v[kAhead];
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j) {
        const bool is_choice = first + j < k;
        weight[j] = is_choice ? weights[first + j] : 0.0f;
        v[j] = is_choice ? y[static_cast<uint64_t>(first + j) * d + i] : 0.0f;
        if (scale == nullptr || !is_choice) continue;
        const auto id = static_cast<uint32_t>(ids[first + j]);
        weight[j] = id < args.symbols[3] ? weight[j] * scale[id] : nan_value();
      }
#pragma unroll
      for (uint32_t j = 0; j < kAhead; ++j)
        if (first + j < k) z = __fmaf_rn(weight[j], v[j], z);
    }
    if (args.buffers[4] != nullptr) args.buffer<float>(4)[static_cast<uint64_t>(t) * d + i] = z;
    if (args.buffers[5] != nullptr) {
      float& hidden = args.buffer<float>(5)[static_cast<uint64_t>(t) * d + i];
      hidden = hidden + z;
    }
  }
}
