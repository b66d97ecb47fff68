// Defines the weight format Q6_K. A block has 256 weights: 16 sub-blocks of 16 with a signed 8-bit scale sc each, 6-bit
// codes, and f16 d. A weight is w = (d * sc) * q, rounded twice, where q = six bits - 32 is in -32..31.
// dot(): isum = sum of sc * q * q_x over a block, which is exact. For blocks ascending, v = float(isum) * d, then acc =
// fma(v, d_x, acc).
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void unpack(const BlockQ6_K& block, std::int8_t* q) {
  for (int half = 0; half < 2; ++half)
    for (int i = 0; i < 32; ++i) {
      const int low0 = block.ql[64 * half + i];
      const int low1 = block.ql[64 * half + 32 + i];
      const int high = block.qh[32 * half + i];
      std::int8_t* out = q + 128 * half + i;
      out[0] = static_cast<std::int8_t>(((low0 & 15) | ((high & 3) << 4)) - 32);
      out[32] = static_cast<std::int8_t>(((low1 & 15) | (((high >> 2) & 3) << 4)) - 32);
      out[64] = static_cast<std::int8_t>(((low0 >> 4) | (((high >> 4) & 3) << 4)) - 32);
      out[96] = static_cast<std::int8_t>(((low1 >> 4) | ((high >> 6) << 4)) - 32);
    }
}

ZRT_INLINE float group_dot(const BlockQ6_K& block, const ActBlockQ8A256& x) {
  std::int8_t q[256];
  unpack(block, q);
  std::int32_t isum = 0;
  for (int j = 0; j < 16; ++j) isum += block.scales[j] * dot_i8<16>(q + 16 * j, x.qs + 16 * j);
  return static_cast<float>(isum) * f16_to_f32(block.d);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockQ6_K*>(row);
  for (std::int64_t g = 0; g < k / kGroup; ++g, y += kGroup) {
    std::int8_t q[256];
    unpack(block[g], q);
    const float d = f16_to_f32(block[g].d);
    for (int j = 0; j < 16; ++j) {
      const float scale = d * static_cast<float>(block[g].scales[j]);
      for (int i = 0; i < 16; ++i) y[16 * j + i] = scale * static_cast<float>(q[16 * j + i]);
    }
  }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_k_groups<BlockQ6_K, group_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatQ6_K{DType::kQ6_K, DType::kQ8A256, dequantize_row, dot};

}  // namespace zinc_rt::cpu
