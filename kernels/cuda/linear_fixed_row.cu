// Products of one row of x with FIXED16 weights (linear_fixed_row.cuh). Each variant is a kernel of its own: x may be
// already quantized, floats that the kernel quantizes (linear_row_floats), or floats that it normalizes and quantizes
// (_norm); _glu also applies GLU to the products; _short is for rows so short that each warp has only one unit of work.
#include "kernels/cuda/linear_fixed_row.cuh"

using namespace zinc_rt::cuda;

static_assert(kFixedRowThreads == 256 && kFixedRowThreads == 32 * kWarps && kFixedRowWorkgroups == 2);
extern "C" __global__ void __launch_bounds__(256, 2) linear_row(const __grid_constant__ LinearArgs args) {
  fixed_row<RowOf::kQuantized, 2>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, 2) linear_row_floats(const __grid_constant__ LinearArgs args) {
  fixed_row<RowOf::kFloats, 2>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, 2) linear_row_norm(const __grid_constant__ LinearArgs args) {
  fixed_row<RowOf::kNorm, 2>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, 4) linear_row_short(const __grid_constant__ LinearArgs args) {
  fixed_row<RowOf::kQuantized, 1>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, 2) linear_row_glu(const __grid_constant__ LinearArgs args) {
  fixed_row<RowOf::kQuantized, 2, true>(args);
  end_product(args);
}
extern "C" __global__ void __launch_bounds__(256, 2) linear_row_norm_glu(const __grid_constant__ LinearArgs args) {
  fixed_row<RowOf::kNorm, 2, true>(args);
  end_product(args);
}
