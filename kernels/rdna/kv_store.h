// Writes one head of K or V of one token to its cell of the KV cache, as KV_WRITE_BATCHED defines it
// (kernels/cpu/kv_write_batched.cpp). There is a struct for each layout of the cache, with this function, which a whole
// wave calls:
//   store(head, part, token, type, is_key): part is the K or the V of one layer in a page, token is the token's place
//   in the page (0 to 15), and type is the type of the cells
#pragma once

#include "kernels/rdna/kv.h"

namespace zinc_rt::rdna {

// The values x of one head, its number, and the number and size of the kv heads.
struct Head {
  const float* x;
  uint32_t head, n_heads, head_dim;
};

// Writes caches of f32, f16 and q8_0, whose cells are rows of one token's values.
struct TokenStore {
  // Converts 32 values to a block of Q8_0. One thread does it.
  ZRT_DEVICE void store_block(const float* x, uint8_t* at) {
    float amax = 0.0f, finite = 0.0f;  // finite: 0, or NaN when some x is not finite
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
    auto& block = *(BlockQ8_0*)at;
    block.d = d;
    for (int i = 0; i < 32; ++i) {
      const float q = usable ? exact::round_int(x[i] * inverse) : 0.0f;
      block.qs[i] = (int8_t)(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
    }
  }
  ZRT_DEVICE void store(const Head& h, uint8_t* part, uint32_t token, uint32_t type, bool) {
    uint8_t* to = part + token * cache_bytes(type, h.n_heads * h.head_dim) + cache_bytes(type, h.head * h.head_dim);
    const uint32_t lane = thread() % kWave;
    if (type == kF32) {
      for (uint32_t i = lane; i < h.head_dim; i += kWave) ((float*)to)[i] = h.x[i];
    } else if (type == kF16) {
      for (uint32_t i = lane; i < h.head_dim; i += kWave) ((uint16_t*)to)[i] = f32_to_f16(h.x[i]);
    } else {
      for (uint32_t b = lane; b < h.head_dim / 32; b += kWave) store_block(h.x + b * 32, to + b * sizeof(BlockQ8_0));
    }
  }
};

// Writes caches of 16-bit integers. kernels/common/kv_integer.h has their layout, and kernels/cpu/quant/integer_kv.h
// defines their codes and scales.
struct IntegerStore {
  ZRT_DEVICE void store(const Head& h, uint8_t* part, uint32_t token, uint32_t, bool is_key) {
    const uint32_t lane = thread() % kWave;
    float amax = 0.0f, finite = 0.0f;  // finite: 0, or NaN when some x is not finite
    for (uint32_t i = lane; i < h.head_dim; i += kWave) {
      const float a = h.x[i] < 0 ? -h.x[i] : h.x[i];
      amax = a > amax ? a : amax;
      finite = finite + h.x[i] * 0.0f;
    }
    for (uint32_t other = 16; other > 0; other /= 2) {
      const float a = from_lane(amax, lane ^ other);
      amax = a > amax ? a : amax;
      finite = finite + from_lane(finite, lane ^ other);
    }
    const bool is_finite = finite == 0.0f, is_usable = is_finite && amax >= 0x1p-100f;
    uint16_t d = is_finite ? 0 : kv_integer::kNanScale;
    if (is_usable) d = (uint16_t)((f32_bits(amax * (1.0f / digits::kMost)) + 0xFFFFu) >> 16);
    const float inverse = is_usable ? exact::rcp(bf16_to_f32(d)) : 0.0f;
    uint8_t* codes = part + kv_integer::codes_at(h.head, h.head_dim);
    for (uint32_t i = lane; i < h.head_dim; i += kWave) {
      const float code = is_usable ? exact::round_int(h.x[i] * inverse) : 0.0f;
      const uint64_t at = is_key ? kv_integer::key_at(token, i) : kv_integer::value_at(token, i, h.head_dim);
      *(int16_t*)(codes + at) = (int16_t)(code > digits::kMost    ? digits::kMost
                                          : code < -digits::kMost ? -digits::kMost
                                                                  : code);
    }
    if (lane == 0) ((uint16_t*)(part + kv_integer::scales_at(h.head, h.n_heads, h.head_dim)))[token] = d;
  }
};

}  // namespace zinc_rt::rdna
