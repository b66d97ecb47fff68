// A decoded block is the integer form of a block of 256 weights without minimums: a weight is w = (d * scale) * code,
// rounded twice. The formats whose blocks store indices into a grid (IQ1, IQ2, IQ3) and the ternary ones (TQ1_0, TQ2_0)
// are decoded to it, here and in the fast kernel sets.
// dot(): isum = sum of scale * code * q_x over a block, which is exact: |code| <= 62, scale <= 31, so isum is below
// 2^27. For blocks ascending, v = float(isum) * d, then acc = fma(v, d_x, acc).
#pragma once

#include <cstdint>

#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {

struct DecodedBlock {
  float d;
  std::uint8_t scales[16];  // of 16 codes each
  std::int8_t codes[256];
};

constexpr int kLargestDecodedCode = 62;  // and the smallest is its negative

template <class Block, void (*kDecode)(const Block&, DecodedBlock&)>
ZRT_INLINE float decoded_group_dot(const Block& block, const ActBlockQ8A256& x) {
  DecodedBlock w;
  kDecode(block, w);
  std::int32_t isum = 0;
  for (int j = 0; j < 16; ++j) isum += w.scales[j] * dot_i8<16>(w.codes + 16 * j, x.qs + 16 * j);
  return static_cast<float>(isum) * w.d;
}

template <class Block, void (*kDecode)(const Block&, DecodedBlock&)>
ZRT_INLINE void dequantize_decoded(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const Block*>(row);
  for (std::int64_t g = 0; g < k / kGroup; ++g, y += kGroup) {
    DecodedBlock w;
    kDecode(block[g], w);
    for (int j = 0; j < 16; ++j) {
      const float scale = w.d * static_cast<float>(w.scales[j]);
      for (int i = 16 * j; i < 16 * j + 16; ++i) y[i] = scale * static_cast<float>(w.codes[i]);
    }
  }
}

// Gives a scale to both halves of sub-block s of 32 values.
ZRT_INLINE void set_scale(DecodedBlock& to, int s, int scale) {
  to.scales[2 * s] = to.scales[2 * s + 1] = static_cast<std::uint8_t>(scale);
}

}  // namespace zinc_rt::cpu

// Defines the row of a format's table entry from its function decode(const Block##name&, DecodedBlock&).
#define ZRT_DECODED_FORMAT(name)                                                                      \
  namespace zinc_rt::cpu {                                                                            \
  namespace {                                                                                         \
  ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {                   \
    dequantize_decoded<Block##name, decode>(row, y, k);                                               \
  }                                                                                                   \
  ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {                      \
    return dot_k_groups<Block##name, decoded_group_dot<Block##name, decode>>(row, act, k);            \
  }                                                                                                   \
  ZRT_MULTIVERSION void decode_block(const void* block, DecodedBlock& to) {                           \
    decode(*static_cast<const Block##name*>(block), to);                                              \
  }                                                                                                   \
  }                                                                                                   \
  const QuantFormat kFormat##name{DType::k##name, DType::kQ8A256, dequantize_row, dot, decode_block}; \
  }
