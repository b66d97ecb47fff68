// Defines the weight format Q4_0. A block has 32 weights: an f16 scale d, and 16 bytes with two 4-bit codes each.
// A weight is w = d * q (rounded once), where q = code - 8 is in -8..7.
// dot(): isum = sum of q * q_x over a block, which is exact. In each group of 8 blocks v begins at 0, and for blocks
// ascending v = fma(float(isum) * d, d_x, v). For groups ascending, acc = acc + v.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/nibbles.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE int low(const BlockQ4_0& block, int i) {
  return (block.qs[i] & 15) - 8;
}
ZRT_INLINE int high(const BlockQ4_0& block, int i) {
  return (block.qs[i] >> 4) - 8;
}

ZRT_INLINE float block_dot(const BlockQ4_0& block, const ActBlockQ8A32& x, float v) {
  const auto isum = static_cast<float>(dot_nibbles<BlockQ4_0, low, high>(block, x));
  return std::fma(isum * f16_to_f32(block.d), x.d, v);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockQ4_0*>(row);
  for (std::int64_t b = 0; b < k / 32; ++b, y += 32)
    scale_nibbles<BlockQ4_0, low, high>(block[b], f16_to_f32(block[b].d), y);
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_32_blocks<BlockQ4_0, block_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatQ4_0{DType::kQ4_0, DType::kQ8A32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
