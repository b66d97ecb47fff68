// SCALE: y = (x * w) * scale, w one stored number or absent; y may be x. Symbols: n, width.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;
namespace exact = zinc_rt::exact;
namespace push = zinc_rt::push;

extern "C" __global__ void scale(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, width = args.dim(1);
  if (t >= args.dim(0)) return;
  const uint64_t row = static_cast<uint64_t>(t) * width;
  const float *x = args.buffer<const float>(0) + row, *w = args.buffer<const float>(1);
  float* y = args.buffer<float>(2) + row;
  const float scale = args.constants<push::Scale>().scale;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < width; i += gridDim.y * blockDim.x)
    y[i] = (w != nullptr ? x[i] * w[0] : x[i]) * scale;
}
