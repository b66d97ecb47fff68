// Products of many rows of x with FIXED16 weights. There is one kernel for each number of rows of x that a workgroup's
// tile holds (kFixedColumns).
#include "kernels/cuda/linear_fixed.cuh"

using namespace zinc_rt::cuda;

static_assert(kFixedThreads == 384);
extern "C" __global__ void __launch_bounds__(384, 1) linear_fixed_128(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_fixed<128>(args);
  end_product(args);
#endif
}
extern "C" __global__ void __launch_bounds__(384, 1) linear_fixed_64(const __grid_constant__ LinearArgs args) {
#if defined(ZRT_HAS_WGMMA)
  linear_fixed<64>(args);
  end_product(args);
#endif
}
