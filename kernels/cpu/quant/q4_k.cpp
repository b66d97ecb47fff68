// Defines the weight format Q4_K. A block has 256 weights: 8 sub-blocks of 32 with a 6-bit scale sc and a 6-bit minimum
// m each, 4-bit codes q, f16 d and dmin.
// A weight is w = (d * sc) * q - (dmin * m), with each product and the difference rounded; q is in 0..15.
// dot(): isum = sum of sc * q * q_x and msum = sum of m * (sum of the sub-block's q_x) over a block, both exact. For
// blocks ascending, v = fma(float(isum), d, float(msum) * -dmin), then acc = fma(v, d_x, acc).
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/k_scales.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void unpack(const BlockQ4_K& block, std::int8_t* q) {
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 32; ++i) {
      q[64 * j + i] = static_cast<std::int8_t>(block.qs[32 * j + i] & 15);
      q[64 * j + 32 + i] = static_cast<std::int8_t>(block.qs[32 * j + i] >> 4);
    }
}

ZRT_INLINE float group_dot(const BlockQ4_K& block, const ActBlockQ8A256& x) {
  std::int8_t q[256];
  unpack(block, q);
  const KScales scales = unpack_k_scales(block.scales);
  std::int32_t isum = 0;
  std::int32_t msum = 0;
  for (int j = 0; j < 8; ++j) {
    isum += scales.sc[j] * dot_i8<32>(q + 32 * j, x.qs + 32 * j);
    msum += scales.m[j] * (x.sums[2 * j] + x.sums[2 * j + 1]);
  }
  return std::fma(static_cast<float>(isum), f16_to_f32(block.d), static_cast<float>(msum) * -f16_to_f32(block.dmin));
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockQ4_K*>(row);
  for (std::int64_t g = 0; g < k / kGroup; ++g, y += kGroup) {
    std::int8_t q[256];
    unpack(block[g], q);
    const KScales scales = unpack_k_scales(block[g].scales);
    const float d = f16_to_f32(block[g].d);
    const float dmin = f16_to_f32(block[g].dmin);
    for (int j = 0; j < 8; ++j) {
      const float scale = d * static_cast<float>(scales.sc[j]);
      const float minimum = dmin * static_cast<float>(scales.m[j]);
      for (int i = 0; i < 32; ++i) y[32 * j + i] = scale * static_cast<float>(q[32 * j + i]) - minimum;
    }
  }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_k_groups<BlockQ4_K, group_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatQ4_K{DType::kQ4_K, DType::kQ8A256, dequantize_row, dot};

}  // namespace zinc_rt::cpu
