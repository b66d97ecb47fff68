// SCALE: y = (x * w) * scale, w one stored number or absent; y may be x.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void scale(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(binding::Scale::x), *w = args.buffer<const float>(binding::Scale::w);
  float* y = args.buffer<float>(binding::Scale::y);
  const float scale = args.constants<push::Scale>().scale;
  each_value(args, [=](uint64_t i) { y[i] = (w != nullptr ? x[i] * w[0] : x[i]) * scale; });
}
