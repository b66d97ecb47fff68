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
  const uint32_t tile = row / args.columns, column = row % args.columns;
  uint8_t* to =
      static_cast<uint8_t*>(args.to) + (static_cast<uint64_t>(tile) * n_groups + g) * digits_x_bytes(args.columns);
  uint8_t* line = to + (step / 4 * args.columns + column) * 128;
  const uint32_t piece = (step % 4 * 2) ^ column % 8;
  *reinterpret_cast<uint4*>(line + piece * 16) = make_uint4(a.x, a.z, b.x, b.z);  // word_of undone
  *reinterpret_cast<uint4*>(line + (piece ^ 1) * 16) = make_uint4(a.y, a.w, b.y, b.w);
  // f16 has all of the sums.
  const uint64_t block = static_cast<uint64_t>(row) * n_groups + g;
  const uint32_t sums = static_cast<const uint32_t*>(x.sums)[block * 8 + step];
  reinterpret_cast<uint32_t*>(to + args.columns * 256 + column * 32)[step] =
      f16_pair(static_cast<float>(static_cast<int16_t>(sums)), static_cast<float>(static_cast<int16_t>(sums >> 16)));
  if (step == 0) reinterpret_cast<float*>(to + args.columns * 288)[column] = x.d[block];
}
