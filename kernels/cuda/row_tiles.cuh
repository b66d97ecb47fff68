// Quantized rows as products in tiles of rows of x read them: by digits of sub-scales (q8a256, digits_args.h), and of
// codes of two digits (q16a256, fixed_args.h).
#pragma once

#include "kernels/cuda/device.cuh"

namespace zinc_rt::cuda {

// Group g of row t of x, as products by digits read it (digits_x_bytes): rows of k values, in tiles of `columns` rows.
struct DigitGroup {
  uint8_t* at;
  uint32_t columns, column;

  __device__ __forceinline__ DigitGroup(void* tiles, uint32_t columns_of_tile, uint32_t t, uint32_t k, uint32_t g)
      : at(static_cast<uint8_t*>(tiles) +
           (static_cast<uint64_t>(t / columns_of_tile) * (k / 256) + g) * digits_x_bytes(columns_of_tile)),
        columns(columns_of_tile),
        column(t % columns_of_tile) {}

  // 16 values of a step of 32, the first or the last.
  __device__ __forceinline__ uint8_t* values(uint32_t step, uint32_t half) const {
    return at + (step / 4 * columns + column) * 128 + ((step % 4 * 2 + half) ^ column % 8) * 16;
  }
  // Of a step two sums of 16 values, halves of a word. f16 has all of them.
  __device__ __forceinline__ void set_sums(uint32_t step, uint32_t sums) const {
    reinterpret_cast<uint32_t*>(at + columns * 256 + column * 32)[step] =
        f16_pair(static_cast<float>(static_cast<int16_t>(sums)), static_cast<float>(static_cast<int16_t>(sums >> 16)));
  }
  __device__ __forceinline__ void set_scale(float d) const { reinterpret_cast<float*>(at + columns * 288)[column] = d; }
};
// They become group g of row t of `tiles`.
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

// The same of codes of two digits.
struct FixedXGroup {
  uint8_t* at;
  uint32_t columns, column;

  __device__ __forceinline__ FixedXGroup(void* tiles, uint32_t columns_of_tile, uint32_t t, uint32_t k, uint32_t g)
      : at(static_cast<uint8_t*>(tiles) +
           (static_cast<uint64_t>(t / columns_of_tile) * (k / 256) + g) * fixed_x_bytes(columns_of_tile)),
        columns(columns_of_tile),
        column(t % columns_of_tile) {}

  // 16 digits of a step of 32 values, of the first 16 or of the last.
  __device__ __forceinline__ uint8_t* digits(uint32_t plane, uint32_t step, uint32_t half) const {
    return at + step / 4 * fixed_half_bytes(columns) + (plane * columns + column) * 128 +
           ((step % 4 * 2 + half) ^ column % 8) * 16;
  }
  __device__ __forceinline__ void set_scale(float d) const {
    reinterpret_cast<float*>(at + 2 * fixed_half_bytes(columns))[column] = d;
  }
};
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

// QUANTIZE of a warp's values at `at` of row t of n rows of k values, of a type that the launch knows. tiles: null, or
// where they become a row of a tile besides.
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
