// The layout of KV caches of rotated values: type r8 with 8 bits per value and r4 with 4 bits, and an f16 scale d for
// each 64 values (docs/arithmetic.md, rule 5). A head x of R values is stored as H(s x), where s are fixed signs and H
// is a Hadamard transform without scaling, so H(H(x)) = R x. R is 64, 128 or 256.
//
// A page part is the keys, or the values, of one layer and the 16 tokens of a page. It has all codes first, then all
// scales:
//   keys    codes [kv head][words of a head][16 tokens][4 bytes], with head_dim / 4 words in r8 and head_dim / 8 in r4;
//           then scales [kv head][head_dim / 64][16 tokens]
//   values  codes [kv head][16 tokens][head_dim / 2 bytes]; then scales [kv head][16 tokens][head_dim / 64]; only in r4
// So the same word of 16 keys is 64 neighbouring bytes, and a token's head of values is one run of bytes.
// In a block of 64 values, byte b of word w of a key holds value 4 w + b in r8. In r4 it holds value 4 w + b in its low
// half and value 32 + 4 w + b in its high half. Byte i of a block of V holds the values i and 32 + i.
// A code c stands for c * d in r8, with c from -127 to 127, and for kTable[c] * (d / 64) in r4.
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
constexpr uint32_t kBlock = 64;  // values that share a scale
constexpr uint32_t kMaxHead = 256;

// The signs s: s_i is -1 if bit i % 32 of word i / 32 is set. The bits are random, and the same for every head and
// model.
constexpr uint32_t kSigns[kMaxHead / 32] = {0x79e58218u, 0x1ff63c01u, 0xa1560927u, 0x9cecdeeeu,
                                            0x6769fc6fu, 0x89419f93u, 0xeb86b180u, 0xafd60b62u};

// kTable: the values of the codes 0 to 15 of r4, ascending. They are the best 16 values for a normal distribution
// (Lloyd-Max), times 46 and rounded. kMiddles: the middles between neighbouring values.
constexpr int8_t kTable[16] = {-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126};
constexpr float kMiddles[15] = {-110.5f, -84.5f, -66.0f, -50.5f, -36.5f, -24.0f, -12.0f, 0.0f,
                                12.0f,   24.0f,  36.5f,  50.5f,  66.0f,  84.5f,  110.5f};
constexpr float kMost = 126.0f;
// Factors that are tried in turn when a block is encoded in r4, after its values were scaled to +-kMost. The one with
// the least error is used (kernels/cpu/quant/rotated_kv.h). A factor above 1 cuts off the largest values.
constexpr float kFactors[4] = {1.0f, 1.0625f, 1.125f, 1.1875f};
// The scale d of r4 is stored times 64, so that it is not a subnormal f16.
constexpr float kStoredScale = 64.0f;

// Returns s_i * x.
ZRT_ROTATE_FN float signed_by(uint32_t i, float x) {
  return (kSigns[i / 32] >> (i % 32) & 1) != 0 ? -x : x;
}

// Computes H(x) in place: (a, b) becomes (a + b, a - b) for values that are h apart, for h = 1, 2, ... n / 2 ascending.
ZRT_ROTATE_FN void transform(float* x, uint32_t n) {
  for (uint32_t h = 1; h < n; h *= 2)
    for (uint32_t at = 0; at < n; at += 2 * h)
      for (uint32_t i = at; i < at + h; ++i) {
        const float a = x[i], b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
}

// Computes y = H(s x). y may be x.
ZRT_ROTATE_FN void rotate(const float* x, float* y, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) y[i] = signed_by(i, x[i]);
  transform(y, n);
}
// Computes the inverse in place: x = s H(x) * (1 / n). 1 / n is a power of two, so the product is exact.
ZRT_ROTATE_FN void rotate_back(float* x, uint32_t n) {
  transform(x, n);
  for (uint32_t i = 0; i < n; ++i) x[i] = signed_by(i, x[i]) * (1.0f / static_cast<float>(n));
}

// Returns the bytes of the codes of one head of one token.
ZRT_ROTATE_FN uint32_t code_bytes(bool is_r8, uint32_t head_dim) {
  return is_r8 ? head_dim : head_dim / 2;
}
// Return where the codes of `head`, of all 16 tokens, and its scales begin in a page part with n_heads heads, in bytes.
ZRT_ROTATE_FN uint64_t codes_at(bool is_r8, uint32_t head, uint32_t head_dim) {
  return static_cast<uint64_t>(head) * kPageTokens * code_bytes(is_r8, head_dim);
}
ZRT_ROTATE_FN uint64_t scales_at(bool is_r8, uint32_t head, uint32_t n_heads, uint32_t head_dim) {
  return codes_at(is_r8, n_heads, head_dim) + static_cast<uint64_t>(head) * kPageTokens * (head_dim / kBlock) * 2;
}

}  // namespace zinc_rt::kv
