// SCALE: y = (x * w) * scale, w one stored number or absent; y may be x. Symbols: n, width.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void scale(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(0), *w = args.buffer<const float>(1);
  float* y = args.buffer<float>(2);
  const float scale = args.constants<push::Scale>().scale;
  each_value(args, [=](uint64_t i) { y[i] = (w != nullptr ? x[i] * w[0] : x[i]) * scale; });
}
