// Defines the weight format Q2_K. A block has 256 weights: 16 sub-blocks of 16 with a 4-bit scale sc and a 4-bit
// minimum m each, 2-bit codes q, f16 d and dmin.
// A weight is w = (d * sc) * q - (dmin * m), with each product and the difference rounded; q is in 0..3.
// dot(): isum = sum of sc * q * q_x and msum = sum of m * (sum of the sub-block's q_x) over a block, both exact. For
// blocks ascending, v = fma(float(isum), d, float(msum) * -dmin), then acc = fma(v, d_x, acc).
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void unpack(const BlockQ2_K& block, std::int8_t* q) {
  for (int half = 0; half < 2; ++half)
    for (int part = 0; part < 4; ++part)
      for (int i = 0; i < 32; ++i)
        q[128 * half + 32 * part + i] = static_cast<std::int8_t>((block.qs[32 * half + i] >> (2 * part)) & 3);
}

ZRT_INLINE float group_dot(const BlockQ2_K& block, const ActBlockQ8A256& x) {
  std::int8_t q[256];
  unpack(block, q);
  std::int32_t isum = 0;
  std::int32_t msum = 0;
  for (int j = 0; j < 16; ++j) {
    isum += (block.scales[j] & 15) * dot_i8<16>(q + 16 * j, x.qs + 16 * j);
    msum += (block.scales[j] >> 4) * x.sums[j];
  }
  return std::fma(static_cast<float>(isum), f16_to_f32(block.d), static_cast<float>(msum) * -f16_to_f32(block.dmin));
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockQ2_K*>(row);
  for (std::int64_t g = 0; g < k / kGroup; ++g, y += kGroup) {
    std::int8_t q[256];
    unpack(block[g], q);
    const float d = f16_to_f32(block[g].d);
    const float dmin = f16_to_f32(block[g].dmin);
    for (int j = 0; j < 16; ++j) {
      const float scale = d * static_cast<float>(block[g].scales[j] & 15);
      const float minimum = dmin * static_cast<float>(block[g].scales[j] >> 4);
      for (int i = 0; i < 16; ++i) y[16 * j + i] = scale * static_cast<float>(q[16 * j + i]) - minimum;
    }
  }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_k_groups<BlockQ2_K, group_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatQ2_K{DType::kQ2_K, DType::kQ8A256, dequantize_row, dot};

}  // namespace zinc_rt::cpu
