// Rows of x for the products by digits of sub-scales (linear_digits.cuh): quantized rows, blocks of 256, to the groups
// of digits_args.h; and for those of FIXED16. Eight lanes have a group of a row, each 32 values.
#include "kernels/cuda/row_tiles.cuh"

using namespace zinc_rt::cuda;

namespace {

// Step `step` of group g of row `row` of k values.
__device__ __forceinline__ void put_step(const ActRows& x, uint64_t row, uint32_t k, uint32_t g, uint32_t step,
                                         const DigitGroup& to) {
  const auto* from = reinterpret_cast<const uint4*>(x.qs + row * k + g * 256 + step * 32);
  const uint4 a = from[0], b = from[1];
  *reinterpret_cast<uint4*>(to.values(step, 0)) = make_uint4(a.x, a.z, b.x, b.z);  // word_of undone
  *reinterpret_cast<uint4*>(to.values(step, 1)) = make_uint4(a.y, a.w, b.y, b.w);
  const uint64_t block = row * (k / 256) + g;
  to.set_sums(step, static_cast<const uint32_t*>(x.sums)[block * 8 + step]);
  if (step == 0) to.set_scale(x.d[block]);
}

}  // namespace

// All rows. Grid: groups of k, fours of rows.
extern "C" __global__ void __launch_bounds__(32) digit_rows(const __grid_constant__ DigitRowsArgs args) {
  const uint32_t n = dim_of(args.rows_symbol, args.step), g = blockIdx.x, row = blockIdx.y * 4 + threadIdx.x / 8;
  begin_rows(n);
  if (row >= n) return;
  put_step(q8_rows(const_cast<void*>(args.x), n, args.k), row, args.k, g, threadIdx.x % 8,
           DigitGroup(args.to, args.columns, row, args.k, g));
}

// The same of codes of two digits (linear_fixed.cuh).
extern "C" __global__ void __launch_bounds__(32) fixed_rows(const __grid_constant__ DigitRowsArgs args) {
  const uint32_t n = dim_of(args.rows_symbol, args.step), g = blockIdx.x, row = blockIdx.y * 4 + threadIdx.x / 8,
                 step = threadIdx.x % 8;
  begin_rows(n);
  if (row >= n) return;
  const ActRows x = q16_rows(const_cast<void*>(args.x), n, args.k);
  const uint64_t block = static_cast<uint64_t>(row) * (args.k / 256) + g;
  const FixedXGroup to(args.to, args.columns, row, args.k, g);
#pragma unroll
  for (uint32_t at = 0; at < 4; ++at)
    *reinterpret_cast<uint4*>(to.digits(at / 2, step, at % 2)) =
        *reinterpret_cast<const uint4*>(x.qs + block * 512 + at / 2 * 256 + step * 32 + at % 2 * 16);
  if (step == 0) to.set_scale(x.d[block]);
}

// Those of items of experts, a tile each. Grid: groups of k, items.
static_assert(kItemRowsThreads == 256);
extern "C" __global__ void __launch_bounds__(256) digit_rows_of_items(const __grid_constant__ DigitRowsArgs args) {
  const uint32_t g = blockIdx.x, item = blockIdx.y;
  wait_for_inputs();
  let_next_start();
  if (static_cast<int32_t>(item) >= args.items[0]) return;
  const int32_t *fields = args.items + 1 + 3 * item, *choices = args.order + fields[1];
  const uint64_t n = static_cast<uint64_t>(dim_of(args.rows_symbol, args.step)) * args.x_rows;
  const ActRows x = q8_rows(const_cast<void*>(args.x), n, args.k);
  for (uint32_t column = threadIdx.x / 8; column < static_cast<uint32_t>(fields[2]); column += kItemRowsThreads / 8) {
    const auto choice = static_cast<uint32_t>(choices[column]);
    put_step(x, args.x_rows == 1 ? choice / args.choices : choice, args.k, g, threadIdx.x % 8,
             DigitGroup(args.to, args.columns, item * args.columns + column, args.k, g));
  }
}
