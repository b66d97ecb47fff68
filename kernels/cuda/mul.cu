// MUL: z = x * y, value by value. z may be the same memory as x. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void mul(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(binding::Mul::x), *y = args.buffer<const float>(binding::Mul::y);
  float* z = args.buffer<float>(binding::Mul::z);
  each_value(args, [=](uint64_t i) { z[i] = x[i] * y[i]; });
}
