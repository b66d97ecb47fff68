// RELU2: y = max(x, 0)^2, value by value; NaN stays NaN. y may be the same memory as x. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void relu2(const __grid_constant__ OpArgs args) {
  const float* x = args.buffer<const float>(binding::Relu2::x);
  float* y = args.buffer<float>(binding::Relu2::y);
  each_value(args, [=](uint64_t i) {
    const float positive = x[i] < 0.0f ? 0.0f : x[i];
    y[i] = positive * positive;
  });
}
