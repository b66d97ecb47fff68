// Defines the weight format Q5_1. A block has 32 weights: f16 d and m, 32 fifth bits, and 16 bytes with two 4-bit low
// parts.
// A weight is w = d * q + m (rounded twice), where q is in 0..31.
// dot(): isum = sum of q * q_x and sum_x = sum of q_x over a block, both exact. In each group of 8 blocks v begins at
// 0, and for blocks ascending v = fma(float(isum) * d, d_x, v), then v = fma(float(sum_x) * m, d_x, v). For groups
// ascending, acc = acc + v.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/nibbles.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE int low(const BlockQ5_1& block, int i) {
  return (block.qs[i] & 15) | fifth_bit(block.qh, i);
}
ZRT_INLINE int high(const BlockQ5_1& block, int i) {
  return (block.qs[i] >> 4) | fifth_bit(block.qh, 16 + i);
}

ZRT_INLINE float block_dot(const BlockQ5_1& block, const ActBlockQ8A32& x, float v) {
  const auto isum = static_cast<float>(dot_nibbles<BlockQ5_1, low, high>(block, x));
  v = std::fma(isum * f16_to_f32(block.d), x.d, v);
  return std::fma(static_cast<float>(x.sum) * f16_to_f32(block.m), x.d, v);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockQ5_1*>(row);
  for (std::int64_t b = 0; b < k / 32; ++b, y += 32)
    scale_nibbles<BlockQ5_1, low, high>(block[b], f16_to_f32(block[b].d), f16_to_f32(block[b].m), y);
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_32_blocks<BlockQ5_1, block_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatQ5_1{DType::kQ5_1, DType::kQ8A32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
