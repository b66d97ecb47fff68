// Defines the weight format Q3_K. A block has 256 weights: 16 sub-blocks of 16 with a 6-bit scale each, codes of two
// low bits and one high bit, and f16 d.
// A weight is w = (d * sc) * q, rounded twice, where sc = six bits - 32, and q = two bits - (high bit ? 0 : 4) is in
// -4..3.
// dot(): isum = sum of sc * q * q_x over a block, which is exact. For blocks ascending, v = float(isum) * d, then acc =
// fma(v, d_x, acc).
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE void unpack(const BlockQ3_K& block, std::int8_t* q) {
  for (int half = 0; half < 2; ++half)
    for (int part = 0; part < 4; ++part)
      for (int i = 0; i < 32; ++i) {
        const int low = (block.qs[32 * half + i] >> (2 * part)) & 3;
        const int high = (block.hmask[i] >> (4 * half + part)) & 1;
        q[128 * half + 32 * part + i] = static_cast<std::int8_t>(low + 4 * high - 4);
      }
}

// Unpacks the 16 scales of a block. The low four bits of scale j are nibble j / 8 of byte j mod 8. Its upper two bits
// are bit pair j / 4 of byte 8 + j mod 4.
ZRT_INLINE void unpack_scales(const BlockQ3_K& block, std::int8_t* sc) {
  for (int j = 0; j < 16; ++j) {
    const int low = (block.scales[j % 8] >> (4 * (j / 8))) & 15;
    const int high = (block.scales[8 + j % 4] >> (2 * (j / 4))) & 3;
    sc[j] = static_cast<std::int8_t>((low | (high << 4)) - 32);
  }
}

ZRT_INLINE float group_dot(const BlockQ3_K& block, const ActBlockQ8A256& x) {
  std::int8_t q[256];
  std::int8_t sc[16];
  unpack(block, q);
  unpack_scales(block, sc);
  std::int32_t isum = 0;
  for (int j = 0; j < 16; ++j) isum += sc[j] * dot_i8<16>(q + 16 * j, x.qs + 16 * j);
  return static_cast<float>(isum) * f16_to_f32(block.d);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockQ3_K*>(row);
  for (std::int64_t g = 0; g < k / kGroup; ++g, y += kGroup) {
    std::int8_t q[256];
    std::int8_t sc[16];
    unpack(block[g], q);
    unpack_scales(block[g], sc);
    const float d = f16_to_f32(block[g].d);
    for (int j = 0; j < 16; ++j) {
      const float scale = d * static_cast<float>(sc[j]);
      for (int i = 0; i < 16; ++i) y[16 * j + i] = scale * static_cast<float>(q[16 * j + i]);
    }
  }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_k_groups<BlockQ3_K, group_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatQ3_K{DType::kQ3_K, DType::kQ8A256, dequantize_row, dot};

}  // namespace zinc_rt::cpu
