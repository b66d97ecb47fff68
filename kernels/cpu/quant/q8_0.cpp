// Defines the weight format Q8_0. A block has 32 weights: an f16 scale d, and 32 signed bytes q.
// A weight is w = d * q, where q is in -128..127.
// dot(): isum = sum of q * q_x over a block, which is exact. In each group of 8 blocks v begins at 0, and for blocks
// ascending v = fma(float(isum) * d, d_x, v). For groups ascending, acc = acc + v.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE float block_dot(const BlockQ8_0& block, const ActBlockQ8A32& x, float v) {
  const auto isum = static_cast<float>(dot_i8<32>(block.qs, x.qs));
  return std::fma(isum * f16_to_f32(block.d), x.d, v);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockQ8_0*>(row);
  for (std::int64_t b = 0; b < k / 32; ++b, y += 32) {
    const float d = f16_to_f32(block[b].d);
    for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(block[b].qs[i]);
  }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_32_blocks<BlockQ8_0, block_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatQ8_0{DType::kQ8_0, DType::kQ8A32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
