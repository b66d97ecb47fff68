// SIGMOID_MUL: y = x * sigmoid(gate), value by value. y may be the same memory as x. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void sigmoid_mul(const __grid_constant__ OpArgs args) {
  const float *x = args.buffer<const float>(binding::SigmoidMul::x),
              *gate = args.buffer<const float>(binding::SigmoidMul::gate);
  float* y = args.buffer<float>(binding::SigmoidMul::y);
  each_value(args, [=](uint64_t i) { y[i] = x[i] * exact::sigmoid(gate[i]); });
}
