// GELU: y = x Phi(x), value by value (exact::gelu). y may be the same memory as x. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void gelu(const __grid_constant__ OpArgs args) {
  const float* x = args.buffer<const float>(binding::Gelu::x);
  float* y = args.buffer<float>(binding::Gelu::y);
  each_value(args, [=](uint64_t i) { y[i] = exact::gelu(x[i]); });
}
