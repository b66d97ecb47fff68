// POOL_MEAN: y[t] is the mean of the rows of x from the first token of t's text up to and including t. The running sum
// of each slot is kept in `sum` between steps. The order of sums is that of kernels/cpu/pool_mean.cpp.
// Grid: (tiles of columns, tokens). Each thread computes one column. Only the workgroup of a slot's first token in this
// step works: it goes through all of the slot's tokens in order.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void pool_mean(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(symbol::PoolMean::rows), d = args.dim(symbol::PoolMean::d),
                 column = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y;
  const int32_t *pos = args.buffer<const int32_t>(binding::PoolMean::pos),
                *slot = args.buffer<const int32_t>(binding::PoolMean::slot);
  if (first >= n || column >= d || (first > 0 && slot[first - 1] == slot[first])) return;
  const float* x = args.buffer<const float>(binding::PoolMean::x);
  float *y = args.buffer<float>(binding::PoolMean::y),
        *sum = args.buffer<float>(binding::PoolMean::sum) + static_cast<uint64_t>(slot[first]) * d + column;
  float acc = *sum;
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    const uint64_t at = static_cast<uint64_t>(t) * d + column;
    acc = pos[t] == 0 ? x[at] : acc + x[at];
    y[at] = exact::div(acc, static_cast<float>(pos[t] + 1));
  }
  *sum = acc;
}
