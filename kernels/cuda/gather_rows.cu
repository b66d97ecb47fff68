// GATHER_ROWS: y[r] = x[rows[r]]. If rows[r] is no row of x, y[r] becomes NaN. Grid: (rows of y, parts of a row).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void gather_rows(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x, d = args.dim(symbol::GatherRows::d);
  if (r >= args.dim(symbol::GatherRows::rows)) return;
  const auto row = static_cast<uint32_t>(args.buffer<const int32_t>(binding::GatherRows::rows)[r]);
  const bool inside = row < args.dim(symbol::GatherRows::n);
  const float* x = args.buffer<const float>(binding::GatherRows::x) + static_cast<uint64_t>(row) * d;
  float* y = args.buffer<float>(binding::GatherRows::y) + static_cast<uint64_t>(r) * d;
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < d; i += gridDim.y * blockDim.x)
    y[i] = inside ? x[i] : nan_value();
}
