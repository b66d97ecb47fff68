// MOE_SUM (moe_sum.cuh); with a hidden row that is added to in place, also the ADD behind it and the end of
// MOE_DOWN_ACC. Buffers: 0 y [n, k d], 1 ids, 2 weights, 3 expert_scale or null, 4 z or null, 5 hidden or null.
// Symbols: n, d, k, e.
#include "kernels/sm_90/moe_sum.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void moe_sum(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, d = args.dim(1);
  if (t >= args.dim(0)) return;
  const Choices choices(args, 0, t, d, args.dim(2), args.symbols[3]);
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < d; i += gridDim.y * blockDim.x) {
    const float z = sum_choices<float>(choices, i);
    if (args.buffers[4] != nullptr) args.buffer<float>(4)[static_cast<uint64_t>(t) * d + i] = z;
    if (args.buffers[5] != nullptr) {
      float& hidden = args.buffer<float>(5)[static_cast<uint64_t>(t) * d + i];
      hidden = hidden + z;
    }
  }
}
