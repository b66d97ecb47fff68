// SCALE: y = (x * w) * scale, value by value. w is a single number in memory, or null. y may be the same memory as x.
// Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void scale(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(binding::Scale::x), *w = args.buffer<const float>(binding::Scale::w);
  float* y = args.buffer<float>(binding::Scale::y);
  const float scale = args.constants<push::Scale>().scale;
  each_value(args, [=](uint64_t i) { y[i] = (w != nullptr ? x[i] * w[0] : x[i]) * scale; });
}
