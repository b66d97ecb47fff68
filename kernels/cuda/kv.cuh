// Writing K and V to cells of the paged KV cache, in every cache type. The cell of a token: page = page_table[slot][pos
// / 16], cell pos % 16 of that page.
#pragma once

#include "kernels/common/kv_integer.h"
#include "kernels/cuda/rotate.cuh"

namespace zinc_rt::cuda {

// Returns the bytes of n values in a cell of type f32, f16 or q8_0.
__device__ __forceinline__ uint64_t cell_bytes(uint32_t type, uint64_t n) {
  return type == kCacheF32 ? 4 * n : type == kCacheF16 ? 2 * n : n / 32 * 34;
}

// Stores n values as the values [first, first + n) of a cell, by n_threads threads. In q8_0 they are whole blocks of
// 32, and a thread stores a block.
__device__ inline void store_cell(const float* values, uint8_t* cell, uint32_t first, uint32_t n, uint32_t type,
                                  uint32_t thread, uint32_t n_threads) {
  if (type == kCacheF32) {
    for (uint32_t i = thread; i < n; i += n_threads) reinterpret_cast<float*>(cell)[first + i] = values[i];
    return;
  }
  if (type == kCacheF16) {
    for (uint32_t i = thread; i < n; i += n_threads)
      reinterpret_cast<uint16_t*>(cell)[first + i] = f32_to_f16(values[i]);
    return;
  }
  for (uint32_t b = thread; b < n / 32; b += n_threads) {
    const float* x = values + b * 32;
    float amax = 0.0f, finite = 0.0f;
    for (int i = 0; i < 32; ++i) {
      const float a = x[i] < 0 ? -x[i] : x[i];
      amax = a > amax ? a : amax;
      finite = finite + x[i] * 0.0f;
    }
    uint16_t d = f32_to_f16(amax * (1.0f / 127.0f));
    const bool is_nan = finite != 0.0f || d == 0x7c00u;
    if (is_nan) d = 0x7e00u;
    const bool usable = !is_nan && d != 0;
    const float inverse = usable ? exact::rcp(f16_to_f32(d)) : 0.0f;
    uint8_t* block = cell + (first / 32 + b) * 34;
    *reinterpret_cast<uint16_t*>(block) = d;
    for (int i = 0; i < 32; ++i) {
      const float q = usable ? exact::round_int(x[i] * inverse) : 0.0f;
      block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q));
    }
  }
}

// Returns the largest magnitude in a warp, or NaN if some value is NaN. As integers, the bits of magnitudes have the
// order of the numbers, and NaN is above all.
__device__ __forceinline__ float largest_or_nan_of_warp(float v) {
  return __uint_as_float(__reduce_max_sync(0xFFFFFFFFu, __float_as_uint(v) & 0x7FFFFFFFu));
}
// Returns the larger of the magnitudes of two values; a NaN is ignored if it is b.
__device__ __forceinline__ float largest_of_two(float a, float b) {
  const float most = a < 0 ? -a : a, other = b < 0 ? -b : b;
  return other > most ? other : most;
}
// Returns the sum over a warp, to all lanes.
__device__ __forceinline__ float sum_of_warp(float v) {
#pragma unroll
  for (int w = 16; w > 0; w /= 2) v = v + __shfl_xor_sync(0xFFFFFFFFu, v, w);
  return v;
}

// CacheRow is the place of one token's K (is_key) or V in a page part, which begins at `page`. token: the token's cell,
// 0 to 15.
struct CacheRow {
  uint8_t* page;
  uint32_t token, type, n_heads, head_dim;
  bool is_key;
};

// Stores a head as 16-bit codes with one scale, by a warp. Layout: kernels/common/kv_integer.h; rule:
// kernels/cpu/quant/integer_kv.h.
__device__ inline void store_integers(const float* x, const CacheRow& row, uint32_t head, uint32_t lane) {
  constexpr float kMost = zinc_rt::digits::kMost;
  float most = 0.0f, finite = 0.0f;  // finite: the sum of x * 0, which is 0, or NaN if some x is not finite
  for (uint32_t i = lane; i < row.head_dim; i += 32) {
    const float a = x[i] < 0 ? -x[i] : x[i];
    most = a > most ? a : most;
    finite = finite + x[i] * 0.0f;
  }
  most = largest_or_nan_of_warp(most);
  const bool is_finite = sum_of_warp(finite) == 0.0f, is_usable = is_finite && most >= 0x1p-100f;
  const uint32_t d = is_usable   ? (__float_as_uint(most * (1.0f / kMost)) + 0xffffu) >> 16
                     : is_finite ? 0
                                 : zinc_rt::kv_integer::kNanScale;
  const float inverse = is_usable ? exact::rcp(__uint_as_float(d << 16)) : 0.0f;
  uint8_t* codes = row.page + zinc_rt::kv_integer::codes_at(head, row.head_dim);
  for (uint32_t i = lane; i < row.head_dim; i += 32) {
    const float q = is_usable ? exact::round_int(x[i] * inverse) : 0.0f;
    const uint64_t at = row.is_key ? zinc_rt::kv_integer::key_at(row.token, i)
                                   : zinc_rt::kv_integer::value_at(row.token, i, row.head_dim);
    *reinterpret_cast<int16_t*>(codes + at) = static_cast<int16_t>(q > kMost ? kMost : q < -kMost ? -kMost : q);
  }
  if (lane == 0)
    reinterpret_cast<uint16_t*>(row.page + zinc_rt::kv_integer::scales_at(head, row.n_heads, row.head_dim))[row.token] =
        static_cast<uint16_t>(d);
}

// Quantize a block of 64 values to 8 or 4 bits by a warp: lane l passes values l and 32 + l and gets their codes.
// Return the scale as f16. The rules are in kernels/cpu/quant/rotated_kv.h.
__device__ __forceinline__ uint16_t codes_of_eight_bits(float a, float b, int (&codes)[2]) {
  const float most = largest_or_nan_of_warp(largest_of_two(a, b)), finite = sum_of_warp(a * 0.0f + b * 0.0f);
  uint16_t d = f32_to_f16(most * (1.0f / 127.0f));
  if (finite != 0.0f || d == 0x7c00u) d = 0x7e00u;
  const bool is_usable = d != 0x7e00u && d != 0;
  const float inverse = is_usable ? exact::rcp(f16_to_f32(d)) : 0.0f;
  const auto code = [&](float x) {
    const float q = is_usable ? exact::round_int(x * inverse) : 0.0f;
    return static_cast<int>(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
  };
  codes[0] = code(a), codes[1] = code(b);
  return d;
}
// For four bits, the rule tries four factors (kv::kFactors) for the scale and takes the one that fits best. The warp
// tries all four at once, with eight lanes per factor. Each factor needs a sum over the block in 16 partial sums, where
// value i belongs to partial sum i % 16. Of a factor's eight lanes, lane l has the partial sums l and l + 8.
__device__ __forceinline__ uint16_t codes_of_four_bits(float a, float b, int (&codes)[2]) {
  const float most = largest_or_nan_of_warp(largest_of_two(a, b)), finite = sum_of_warp(a * 0.0f + b * 0.0f);
  codes[0] = codes[1] = 0;
  if (finite != 0.0f || most > 0x1p100f) return 0x7e00u;
  if (most < 0x1p-100f) return 0;
  constexpr auto factors = rotated::copied(kv::kFactors);
  static_assert(sizeof(factors.of) == 4 * sizeof(float));
  const auto factor_of = [&](uint32_t i) {
    return i < 2 ? (i == 0 ? factors.of[0] : factors.of[1]) : (i == 2 ? factors.of[2] : factors.of[3]);
  };
  const uint32_t lane = threadIdx.x % 32;
  const float inverse = exact::div(kv::kMost, most), z[2] = {a * inverse, b * inverse}, factor = factor_of(lane / 8);
  float sums[2] = {0.0f, 0.0f};
  int squares = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < 4; ++i)
#pragma unroll
    for (uint32_t k = 0; k < 2; ++k) {
      const float x = __shfl_sync(0xFFFFFFFFu, i < 2 ? z[0] : z[1], static_cast<int>(lane % 8 + 16 * (i % 2) + 8 * k));
      const int value = rotated::nearest(x * factor).value;
      sums[k] = __fmaf_rn(x, static_cast<float>(value), sums[k]);
      squares += value * value;
    }
  float t = sums[0] + sums[1];
#pragma unroll
  for (int w = 4; w > 0; w /= 2) {
    t = t + __shfl_xor_sync(0xFFFFFFFFu, t, w);
    squares += __shfl_xor_sync(0xFFFFFFFFu, squares, w);
  }
  t = 0.0f + t;
  const float of_squares = static_cast<float>(squares);
  float gain = exact::div(t * t, of_squares);
  uint32_t best = lane / 8;  // if gains are equal, the first factor wins
#pragma unroll
  for (int w = 8; w < 32; w *= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFu, gain, w);
    const uint32_t of = __shfl_xor_sync(0xFFFFFFFFu, best, w);
    if (other > gain || (other == gain && of < best)) gain = other, best = of;
  }
  const float best_factor = __shfl_sync(0xFFFFFFFFu, exact::div(t, of_squares), static_cast<int>(best * 8));
#pragma unroll
  for (uint32_t i = 0; i < 2; ++i) codes[i] = rotated::nearest(z[i] * factor_of(best)).code;
  const uint16_t d = f32_to_f16(best_factor * (most * (kv::kStoredScale / kv::kMost)));
  return d == 0x7c00u ? 0x7e00u : d;
}

// Stores a head as rotated codes, by a warp (layout: kernels/common/kv_rotate.h). Values have four bits; keys have
// eight or four.
__device__ inline void store_rotated(const float* x, const CacheRow& row, uint32_t head, uint32_t lane) {
  const bool is_r8 = row.is_key && row.type == kCacheR8;
  const uint32_t n_blocks = row.head_dim / kv::kBlock;
  float values[rotated::kRegisters];
  rotated::rotate(x, row.head_dim, values);
  uint8_t* codes = row.page + kv::codes_at(is_r8, head, row.head_dim);
  auto* scales = reinterpret_cast<uint16_t*>(row.page + kv::scales_at(is_r8, head, row.n_heads, row.head_dim));
#pragma unroll 1
  for (uint32_t b = 0; b < n_blocks; ++b) {
    int made[2];
    const float first = rotated::register_of(values, 2 * b), second = rotated::register_of(values, 2 * b + 1);
    const uint16_t d = is_r8 ? codes_of_eight_bits(first, second, made) : codes_of_four_bits(first, second, made);
    const uint32_t key_word = lane / 4 * kv::kPageTokens + row.token;
    if (is_r8) {
      uint8_t* block = codes + b * kv::kBlock * kv::kPageTokens + key_word * 4 + lane % 4;
      block[0] = static_cast<uint8_t>(made[0]);
      block[8 * kv::kPageTokens * 4] = static_cast<uint8_t>(made[1]);
    } else {
      const uint64_t at = row.is_key ? b * (kv::kBlock / 2) * kv::kPageTokens + key_word * 4 + lane % 4
                                     : (row.token * n_blocks + b) * (kv::kBlock / 2) + lane;
      codes[at] = static_cast<uint8_t>(made[0] | made[1] << 4);
    }
    if (lane == 0) scales[row.is_key ? b * kv::kPageTokens + row.token : row.token * n_blocks + b] = d;
  }
}

// Stores n values as the values [first, first + n) of a token's K or V, by n_threads threads in whole warps. Types with
// a scale per head need whole heads. Kernels of rotated types (kIsRotated) are compiled separately, because their
// registers would make the others slower.
template <bool kIsRotated>
__device__ inline void store_values(const float* values, const CacheRow& row, uint32_t first, uint32_t n,
                                    uint32_t thread, uint32_t n_threads) {
  if (!kIsRotated && row.type != kCacheI16) {
    const uint64_t cell = cell_bytes(row.type, static_cast<uint64_t>(row.n_heads) * row.head_dim);
    store_cell(values, row.page + row.token * cell, first, n, row.type, thread, n_threads);
    return;
  }
  for (uint32_t h = thread / 32; h < n / row.head_dim; h += n_threads / 32) {
    const float* x = values + h * row.head_dim;
    if constexpr (kIsRotated)
      store_rotated(x, row, first / row.head_dim + h, thread % 32);
    else
      store_integers(x, row, first / row.head_dim + h, thread % 32);
  }
}

}  // namespace zinc_rt::cuda
