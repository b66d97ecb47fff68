// Defines the weight format IQ4_XS. A block has 256 weights: 8 sub-blocks of 32 with a 6-bit scale each, 4-bit indices,
// and an f16 d. A weight is w = (d * sc) * q, rounded twice, where sc = six bits - 32, and q = kIq4Values[index] is in
// -127..113.
// dot(): isum = sum of sc * q * q_x over a block, which is exact. For blocks ascending, v = float(isum) * d, then acc =
// fma(v, d_x, acc).
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/value_tables.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE int low(const BlockIQ4_XS& block, int j, int i) {
  return kIq4Values[block.qs[16 * j + i] & 15];
}
ZRT_INLINE int high(const BlockIQ4_XS& block, int j, int i) {
  return kIq4Values[block.qs[16 * j + i] >> 4];
}

ZRT_INLINE int sub_scale(const BlockIQ4_XS& block, int j) {
  const int low = (block.scales_l[j / 2] >> (4 * (j % 2))) & 15;
  const int high = (block.scales_h >> (2 * j)) & 3;
  return (low | (high << 4)) - 32;
}

ZRT_INLINE float group_dot(const BlockIQ4_XS& block, const ActBlockQ8A256& x) {
  std::int32_t isum = 0;
  for (int j = 0; j < 8; ++j) {
    std::int32_t sum = 0;
    ZRT_ROLLED
    for (int i = 0; i < 16; ++i) sum += low(block, j, i) * x.qs[32 * j + i] + high(block, j, i) * x.qs[32 * j + 16 + i];
    isum += sub_scale(block, j) * sum;
  }
  return static_cast<float>(isum) * f16_to_f32(block.d);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockIQ4_XS*>(row);
  for (std::int64_t g = 0; g < k / kGroup; ++g, y += kGroup) {
    const float d = f16_to_f32(block[g].d);
    for (int j = 0; j < 8; ++j) {
      const float scale = d * static_cast<float>(sub_scale(block[g], j));
      for (int i = 0; i < 16; ++i) y[32 * j + i] = scale * static_cast<float>(low(block[g], j, i));
      for (int i = 0; i < 16; ++i) y[32 * j + 16 + i] = scale * static_cast<float>(high(block[g], j, i));
    }
  }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_k_groups<BlockIQ4_XS, group_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatIQ4_XS{DType::kIQ4_XS, DType::kQ8A256, dequantize_row, dot};

}  // namespace zinc_rt::cpu
