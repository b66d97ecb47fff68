// ADD: z = x + y; z may be x. Symbols: n, width.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void add(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(0), *y = args.buffer<const float>(1);
  float* z = args.buffer<float>(2);
  each_value(args, [=](uint64_t i) { z[i] = x[i] + y[i]; });
}
