// Products of one row, and the RMS_NORM before them, by matrices of two types side by side, as q, k and v are in files
// of mixed types: one of ZRT_WEIGHTS, and Q6_K. The first workgroups have the one type, the others the other. A second
// launch would normalize the row again, and only once the first has its inputs.
#include "kernels/cuda/linear.cuh"

using namespace zinc_rt::cuda;

constexpr Format kFormat = ZRT_WEIGHTS;

extern "C" __global__ void __launch_bounds__(288, 3) linear_1_norm(const __grid_constant__ MixedArgs args) {
  if (blockIdx.x < args.n_first)
    linear<kFormat, OneColumn<kFormat, 1>, true>(args.of[0], {blockIdx.x, args.n_first});
  else
    linear<kQ6_K, OneColumn<kQ6_K, 1>, true>(args.of[1], {blockIdx.x - args.n_first, gridDim.x - args.n_first});
}
