// Stores quantized rows of x in the tiles that products on tensor cores read: those by digits of sub-scales (q8a256,
// layout in digits_args.h) and those of FIXED16 (q16a256, layout in fixed_args.h).
#pragma once

#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

// DigitGroup tells where group g (256 values) of row t of x is stored in the tiles for products by digits of
// sub-scales. Each row of x is a column of the product. A tile has columns_of_tile rows of x, and row t is its column t
// % columns_of_tile. k: values per row. A step is 32 values of a group.
struct DigitGroup {
  uint8_t* at;
  uint32_t columns, column;

  __device__ __forceinline__ DigitGroup(void* tiles, uint32_t columns_of_tile, uint32_t t, uint32_t k, uint32_t g)
      : at(static_cast<uint8_t*>(tiles) +
           (static_cast<uint64_t>(t / columns_of_tile) * (k / 256) + g) * digits_x_bytes(columns_of_tile)),
        columns(columns_of_tile),
        column(t % columns_of_tile) {}

  // Returns the address of 16 values of step `step`: the first (half 0) or the last (half 1) of its 32.
  __device__ __forceinline__ uint8_t* values(uint32_t step, uint32_t half) const {
    return at + (step / 4 * columns + column) * 128 + ((step % 4 * 2 + half) ^ column % 8) * 16;
  }
  // Stores the two sums of 16 values of a step, which are the halves of `sums`, as f16. f16 represents them exactly.
  __device__ __forceinline__ void set_sums(uint32_t step, uint32_t sums) const {
    reinterpret_cast<uint32_t*>(at + columns * 256 + column * 32)[step] =
        f16_pair(static_cast<float>(static_cast<int16_t>(sums)), static_cast<float>(static_cast<int16_t>(sums >> 16)));
  }
  __device__ __forceinline__ void set_scale(float d) const { reinterpret_cast<float*>(at + columns * 288)[column] = d; }
};
// Stores a warp's 256 quantized values as group g of row t of `tiles`.
__device__ __forceinline__ void store_digits(const QuantizedEight& q, void* tiles, uint32_t columns, uint32_t t,
                                             uint32_t k, uint32_t g) {
  const uint32_t lane = threadIdx.x % 32, step = lane / 4;
  const DigitGroup to(tiles, columns, t, k, g);
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half)
    reinterpret_cast<uint32_t*>(to.values(step, half))[lane % 4] = q.words[half];
  if (lane % 4 == 0) to.set_sums(step, q.sum);
  if (lane == 0) to.set_scale(q.d);
}

// FixedXGroup is the same for the tiles for products of FIXED16, whose x has codes of two digits.
struct FixedXGroup {
  uint8_t* at;
  uint32_t columns, column;

  __device__ __forceinline__ FixedXGroup(void* tiles, uint32_t columns_of_tile, uint32_t t, uint32_t k, uint32_t g)
      : at(static_cast<uint8_t*>(tiles) +
           (static_cast<uint64_t>(t / columns_of_tile) * (k / 256) + g) * fixed_x_bytes(columns_of_tile)),
        columns(columns_of_tile),
        column(t % columns_of_tile) {}

  // Returns the address of 16 digits of step `step`, of its first (half 0) or last (half 1) 16 values. plane: 0 for the
  // high digits, 1 for the low ones.
  __device__ __forceinline__ uint8_t* digits(uint32_t plane, uint32_t step, uint32_t half) const {
    return at + step / 4 * fixed_half_bytes(columns) + (plane * columns + column) * 128 +
           ((step % 4 * 2 + half) ^ column % 8) * 16;
  }
  __device__ __forceinline__ void set_scale(float d) const {
    reinterpret_cast<float*>(at + 2 * fixed_half_bytes(columns))[column] = d;
  }
};
// Stores a warp's 256 quantized values (codes of two digits) as group g of row t of `tiles`.
__device__ __forceinline__ void store_fixed(const QuantizedEight& q, void* tiles, uint32_t columns, uint32_t t,
                                            uint32_t k, uint32_t g) {
  const uint32_t lane = threadIdx.x % 32, step = lane / 4;
  const FixedXGroup to(tiles, columns, t, k, g);
#pragma unroll
  for (uint32_t half = 0; half < 2; ++half) {
    reinterpret_cast<uint32_t*>(to.digits(0, step, half))[lane % 4] = q.words[half];
    reinterpret_cast<uint32_t*>(to.digits(1, step, half))[lane % 4] = q.low[half];
  }
  if (lane == 0) to.set_scale(q.d);
}

// Quantizes a warp's 256 values to `type`, which is known only at run time. They begin at value `at` of row t; there
// are n rows of k values. If tiles is not null, the quantized values are also stored there. columns: rows of x per
// tile.
__device__ __forceinline__ void quantize_to_tiles(uint32_t type, const Eight& x, void* rows, uint64_t n, uint32_t t,
                                                  uint32_t k, uint32_t at, void* tiles, uint32_t columns) {
  if (tiles == nullptr) {
    quantize_eight(type, x, rows, n, t, k, at);
  } else if (type == kQ16A256) {
    const QuantizedEight q = quantized<kQ16A256>(x);
    store_eight<kQ16A256>(q, q16_rows(rows, n, k), t, k, at);
    if (at < k) store_fixed(q, tiles, columns, t, k, at / 256);
  } else {
    const QuantizedEight q = quantized<kQ8A256>(x);
    store_eight<kQ8A256>(q, q8_rows(rows, n, k), t, k, at);
    if (at < k) store_digits(q, tiles, columns, t, k, at / 256);
  }
}

}  // namespace zinc_rt::cuda
