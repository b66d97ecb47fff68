// SIGMOID_MUL: y = x * sigmoid(gate); y may be x. Symbols: n, width.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void sigmoid_mul(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(0), *gate = args.buffer<const float>(1);
  float* y = args.buffer<float>(2);
  each_value(args, [=](uint64_t i) { y[i] = x[i] * exact::sigmoid(gate[i]); });
}
