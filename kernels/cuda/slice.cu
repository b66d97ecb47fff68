// SLICE: y[t][g][i] = x[t][g][first + i], where each row t of x has `groups` groups of `group` values, of which `width`
// are copied. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void slice(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::Rows::rows)) return;
  const auto c = args.constants<push::Slice>();
  const float* x =
      args.buffer<const float>(binding::Slice::x) + static_cast<uint64_t>(blockIdx.x) * c.groups * c.group + c.first;
  float* y = args.buffer<float>(binding::Slice::y) + static_cast<uint64_t>(blockIdx.x) * c.groups * c.width;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < c.groups * c.width; i += gridDim.y * blockDim.x)
    y[i] = x[static_cast<uint64_t>(i / c.width) * c.group + i % c.width];
}
