// SIGMOID_MUL: y = x * sigmoid(gate); y may be x. Symbols: n, width.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;
namespace exact = zinc_rt::exact;
namespace push = zinc_rt::push;

extern "C" __global__ void sigmoid_mul(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, width = args.dim(1);
  if (t >= args.dim(0)) return;
  const uint64_t row = static_cast<uint64_t>(t) * width;
  const float *x = args.buffer<const float>(0) + row, *gate = args.buffer<const float>(1) + row;
  float* y = args.buffer<float>(2) + row;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < width; i += gridDim.y * blockDim.x)
    y[i] = x[i] * exact::sigmoid(gate[i]);
}
