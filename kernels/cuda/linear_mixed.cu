// One RMS_NORM of one row of x and, in the same launch, its products with matrices of two weight types. Files of mixed
// types store q, k and v like this: some as ZRT_WEIGHTS (the type that this image is compiled for), some as Q6_K.
// Workgroups 0 to n_first - 1 multiply by the matrices of the first type, the other workgroups by those of the second.
// With one launch per type, the second launch would normalize the row again, and could begin to do so only after the
// first launch had received its inputs.
#include "kernels/cuda/linear.cuh"

using namespace zinc_rt::cuda;

constexpr Format kFormat = ZRT_WEIGHTS;

extern "C" __global__ void __launch_bounds__(288, 3) linear_1_norm(const __grid_constant__ MixedArgs args) {
  if (blockIdx.x < args.n_first)
    linear<kFormat, OneColumn<kFormat, 1>, true>(args.of[0], {blockIdx.x, args.n_first});
  else
    linear<kQ6_K, OneColumn<kQ6_K, 1>, true>(args.of[1], {blockIdx.x - args.n_first, gridDim.x - args.n_first});
}
