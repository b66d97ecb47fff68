// MOE_ADD_BIAS: adds to each row of a product of experts the bias of the expert that computed it. A row whose id is not
// that of an expert is left as it is. Grid: (tokens, parts of a token's rows).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void moe_add_bias(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, k = args.dim(symbol::MoeAddBias::k), e = args.dim(symbol::MoeAddBias::e),
                 f = args.dim(symbol::MoeAddBias::f);
  if (t >= args.dim(symbol::MoeAddBias::rows)) return;
  const int32_t* ids = args.buffer<const int32_t>(binding::MoeAddBias::ids) + static_cast<uint64_t>(t) * k;
  const float* bias = args.buffer<const float>(binding::MoeAddBias::bias);
  float* y = args.buffer<float>(binding::MoeAddBias::y) + static_cast<uint64_t>(t) * k * f;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < k * f; i += gridDim.y * blockDim.x) {
    const auto id = static_cast<uint32_t>(ids[i / f]);
    if (id < e) y[i] = y[i] + bias[static_cast<uint64_t>(id) * f + i % f];
  }
}
