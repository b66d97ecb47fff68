// Defines the weight format IQ4_NL. A block has 32 weights: an f16 scale d, and 16 bytes with two 4-bit indices each.
// A weight is w = d * q (rounded once), where q = kIq4Values[index] is in -127..113.
// dot(): isum = sum of q * q_x over a block, which is exact. In each group of 8 blocks v begins at 0, and for blocks
// ascending v = fma(float(isum) * d, d_x, v). For groups ascending, acc = acc + v.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/nibbles.h"
#include "kernels/cpu/quant/value_tables.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE int low(const BlockIQ4_NL& block, int i) {
  return kIq4Values[block.qs[i] & 15];
}
ZRT_INLINE int high(const BlockIQ4_NL& block, int i) {
  return kIq4Values[block.qs[i] >> 4];
}

ZRT_INLINE float block_dot(const BlockIQ4_NL& block, const ActBlockQ8A32& x, float v) {
  const auto isum = static_cast<float>(dot_nibbles<BlockIQ4_NL, low, high>(block, x));
  return std::fma(isum * f16_to_f32(block.d), x.d, v);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockIQ4_NL*>(row);
  for (std::int64_t b = 0; b < k / 32; ++b, y += 32)
    scale_nibbles<BlockIQ4_NL, low, high>(block[b], f16_to_f32(block[b].d), y);
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_32_blocks<BlockIQ4_NL, block_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatIQ4_NL{DType::kIQ4_NL, DType::kQ8A32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
