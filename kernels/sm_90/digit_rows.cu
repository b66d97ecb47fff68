// Rows of x for the products by digits of sub-scales (linear_digits.cuh): quantized rows, blocks of 256, to the groups
// of args.h. Grid: groups of k, rows; a warp has four rows, a lane 32 values of one.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void __launch_bounds__(32) digit_rows(const __grid_constant__ DigitRowsArgs args) {
  const uint32_t n = dim_of(args.rows_symbol, args.step), n_groups = args.k / 256, g = blockIdx.x,
                 row = blockIdx.y * 4 + threadIdx.x / 8, step = threadIdx.x % 8;
  begin_rows(n);
  if (row >= n) return;
  const Q8Rows x = q8_rows(const_cast<void*>(args.x), n, args.k);
  const auto* from = reinterpret_cast<const uint4*>(x.qs + static_cast<uint64_t>(row) * args.k + g * 256 + step * 32);
  const uint4 a = from[0], b = from[1];
  const DigitGroup to(args.to, args.columns, row, args.k, g);
  *reinterpret_cast<uint4*>(to.values(step, 0)) = make_uint4(a.x, a.z, b.x, b.z);  // word_of undone
  *reinterpret_cast<uint4*>(to.values(step, 1)) = make_uint4(a.y, a.w, b.y, b.w);
  const uint64_t block = static_cast<uint64_t>(row) * n_groups + g;
  to.set_sums(step, static_cast<const uint32_t*>(x.sums)[block * 8 + step]);
  if (step == 0) to.set_scale(x.d[block]);
}
