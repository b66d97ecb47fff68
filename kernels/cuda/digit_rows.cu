// Copies quantized rows of x into the layouts that tensor-core products read: digit_rows for linear_digits.cuh (layout:
// digits_args.h), fixed_rows for linear_fixed.cuh (fixed_args.h), digit_rows_of_items for experts. They run only if no
// earlier kernel wrote that layout itself.
// Eight threads copy one group (256 values) of a row; each copies a step of 32 values.
#include "kernels/cuda/row_tiles.cuh"

using namespace zinc_rt::cuda;

namespace {

// Copies step `step` (32 values) of group g of row `row`, with its sums; the thread of step 0 also copies the group's
// scale. k: values per row.
__device__ __forceinline__ void put_step(const ActRows& x, uint64_t row, uint32_t k, uint32_t g, uint32_t step,
                                         const DigitGroup& to) {
  const auto* from = reinterpret_cast<const uint4*>(x.qs + row * k + g * 256 + step * 32);
  const uint4 a = from[0], b = from[1];
  // Puts the words back into the order of k, undoing word_of().
  *reinterpret_cast<uint4*>(to.values(step, 0)) = make_uint4(a.x, a.z, b.x, b.z);
  *reinterpret_cast<uint4*>(to.values(step, 1)) = make_uint4(a.y, a.w, b.y, b.w);
  const uint64_t block = row * (k / 256) + g;
  to.set_sums(step, static_cast<const uint32_t*>(x.sums)[block * 8 + step]);
  if (step == 0) to.set_scale(x.d[block]);
}

}  // namespace

// Converts all rows of x (q8a256). Grid: (groups of k, rows / 4). A workgroup of 32 threads copies one group of four
// rows.
extern "C" __global__ void __launch_bounds__(32) digit_rows(const __grid_constant__ DigitRowsArgs args) {
  const uint32_t n = dim_of(args.rows_symbol, args.step), g = blockIdx.x, row = blockIdx.y * 4 + threadIdx.x / 8;
  begin_rows(n);
  if (row >= n) return;
  put_step(q8_rows(const_cast<void*>(args.x), n, args.k), row, args.k, g, threadIdx.x % 8,
           DigitGroup(args.to, args.columns, row, args.k, g));
}

// Converts rows whose codes have two digits (q16a256), for linear_fixed.cuh. Grid and threads are those of digit_rows.
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

// Converts the rows that were sorted by expert. An item is a tile of rows of x that chose the same expert; each item's
// rows become a tile. Grid: (groups of k, items).
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
