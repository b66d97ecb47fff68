// Cells of the KV cache that hold rotated values: r8 with 8 bits and r4 with 4 bits a value, one f16 scale d for 64
// values (docs/arithmetic.md, rule 5). What is stored of a head x of R values is H(s x), where s are fixed signs and H
// is a Hadamard transform without scaling, so H(H(x)) = R x. R is 64, 128 or 256.
//
// A page part holds 16 tokens of one layer's keys, or of its values, as a whole:
//   keys    codes [kv head][head_dim / 4 words, r4: / 8][16 tokens][4 bytes], then d [kv head][head_dim / 64][16 tokens]
//   values  codes [kv head][16 tokens][head_dim / 2 bytes], then d [kv head][16 tokens][head_dim / 64]; r4 alone
// So one word of a key lies beside that word of 15 other tokens, and a head of values is one run of bytes.
// In a block of 64 values, byte b of word w is value 4 w + b with r8; with r4 value 4 w + b in its low and 32 + 4 w + b
// in its high half. Byte i of a block of values holds i and 32 + i.
// Value of a code c: r8 c * d, with c from -127 to 127; r4 kKvTable[c] * (d / 64).
// Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

#include "kernels/common/kv_page.h"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define ZRT_ROTATE_FN static __host__ __device__ __forceinline__
#else
#define ZRT_ROTATE_FN static inline __attribute__((always_inline))
#endif

namespace zinc_rt::kv {

using zinc_rt::kPageTokens;
constexpr uint32_t kBlock = 64;  // values of a scale
constexpr uint32_t kMaxHead = 256;

// Bit i % 32 of word i / 32: s_i is -1. Random bits, the same for every head and model.
constexpr uint32_t kSigns[kMaxHead / 32] = {0x79e58218u, 0x1ff63c01u, 0xa1560927u, 0x9cecdeeeu,
                                            0x6769fc6fu, 0x89419f93u, 0xeb86b180u, 0xafd60b62u};

// The 16 values of 4 bits that are best for a normal distribution (Lloyd-Max), times 46 and rounded, for a code from 0
// to 15 ascending; and the middles between neighbours.
constexpr int8_t kTable[16] = {-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126};
constexpr float kMiddles[15] = {-110.5f, -84.5f, -66.0f, -50.5f, -36.5f, -24.0f, -12.0f, 0.0f,
                                12.0f,   24.0f,  36.5f,  50.5f,  66.0f,  84.5f,  110.5f};
constexpr float kMost = 126.0f;
// What a block's values are multiplied by, after they were scaled to +-kMost, to look for the table's best fit: beyond 1
// the largest of them are cut off.
constexpr float kFactors[4] = {1.0f, 1.0625f, 1.125f, 1.1875f};
// d of r4 is stored times 64, so that it is no subnormal f16.
constexpr float kStoredScale = 64.0f;

ZRT_ROTATE_FN float signed_by(uint32_t i, float x) {
  return (kSigns[i / 32] >> (i % 32) & 1) != 0 ? -x : x;
}

// H in place: sums and differences of values h apart, for h = 1, 2, ... n / 2 ascending.
ZRT_ROTATE_FN void transform(float* x, uint32_t n) {
  for (uint32_t h = 1; h < n; h *= 2)
    for (uint32_t at = 0; at < n; at += 2 * h)
      for (uint32_t i = at; i < at + h; ++i) {
        const float a = x[i], b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
}

// y = H(s x). y may be x.
ZRT_ROTATE_FN void rotate(const float* x, float* y, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) y[i] = signed_by(i, x[i]);
  transform(y, n);
}
// The inverse, in place: x = s H(x) * (1 / n). 1 / n is a power of two.
ZRT_ROTATE_FN void rotate_back(float* x, uint32_t n) {
  transform(x, n);
  for (uint32_t i = 0; i < n; ++i) x[i] = signed_by(i, x[i]) * (1.0f / static_cast<float>(n));
}

// Bytes of the codes of a head of one token.
ZRT_ROTATE_FN uint32_t code_bytes(bool is_r8, uint32_t head_dim) {
  return is_r8 ? head_dim : head_dim / 2;
}
// Where a page part of n_heads heads has the codes of `head` (of all 16 tokens), and its scales.
ZRT_ROTATE_FN uint64_t codes_at(bool is_r8, uint32_t head, uint32_t head_dim) {
  return static_cast<uint64_t>(head) * kPageTokens * code_bytes(is_r8, head_dim);
}
ZRT_ROTATE_FN uint64_t scales_at(bool is_r8, uint32_t head, uint32_t n_heads, uint32_t head_dim) {
  return codes_at(is_r8, n_heads, head_dim) + static_cast<uint64_t>(head) * kPageTokens * (head_dim / kBlock) * 2;
}

}  // namespace zinc_rt::kv
