// ADD: z = x + y, value by value. z may be the same memory as x. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void add(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(binding::Add::x), *y = args.buffer<const float>(binding::Add::y);
  float* z = args.buffer<float>(binding::Add::z);
  each_value(args, [=](uint64_t i) { z[i] = x[i] + y[i]; });
}
