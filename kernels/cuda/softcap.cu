// SOFTCAP: y = cap * tanh(x / cap), value by value; 1 / cap is computed once, by exact::rcp. y may be the same memory
// as x. Grid: (rows, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void softcap(const __grid_constant__ OpArgs args) {
  const float* x = args.buffer<const float>(binding::Softcap::x);
  float* y = args.buffer<float>(binding::Softcap::y);
  const float cap = args.constants<push::Softcap>().cap, inverse = exact::rcp(cap);
  each_value(args, [=](uint64_t i) { y[i] = cap * exact::tanh(x[i] * inverse); });
}
