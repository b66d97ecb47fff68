// Defines the weight format NVFP4. A block has 64 weights: 4 sub-blocks of 16 with an 8-bit float scale each, and 32
// bytes with two 4-bit floats each.
// A weight is w = s * q (rounded once), where s is half the sub-block's 8-bit float, and q = kFp4Values[code] is in
// -12..12.
// dot(): isum = sum of q * q_x over a sub-block, which is exact. In each group of 256 values v begins at 0, and for
// sub-blocks ascending v = fma(float(isum) * s, d_x, v); two sub-blocks share a d_x. For groups ascending, acc =
// acc + v.
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/value_tables.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

// Returns half the value of an unsigned 8-bit float: 4 bits of exponent e, 3 bits m, and the highest bit is ignored. It
// is (8 + m) * 2^(e - 11), or m * 2^-10 if e = 0. The byte 0x7F gives 0. The bits are moved to the places that e and m
// have in an f32, and the product corrects the exponent, which is exact.
ZRT_INLINE float scale(std::uint8_t bits) {
  return bits == 0x7F ? 0.0f : f32_from_bits((bits & 0x7Fu) << 20) * 0x1p119f;
}

// Value i of sub-block j: low nibbles are values 0 to 7, high nibbles 8 to 15.
ZRT_INLINE int code(const BlockNVFP4& block, int j, int i) {
  return kFp4Values[block.qs[8 * j + i % 8] >> (i < 8 ? 0 : 4) & 15];
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockNVFP4*>(row);
  for (std::int64_t b = 0; b < k / 64; ++b, y += 64)
    for (int j = 0; j < 4; ++j) {
      const float s = scale(block[b].scales[j]);
      for (int i = 0; i < 16; ++i) y[16 * j + i] = s * static_cast<float>(code(block[b], j, i));
    }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  const auto* block = static_cast<const BlockNVFP4*>(row);
  const auto* x = static_cast<const ActBlockQ8A32*>(act);
  float acc = 0;
  for (std::int64_t first = 0; first < k; first += kGroup) {
    const std::int64_t end = first + kGroup < k ? first + kGroup : k;
    float v = 0;
    for (std::int64_t at = first; at < end; at += 16) {
      const int j = static_cast<int>(at / 16 % 4);
      const ActBlockQ8A32& x_block = x[at / 32];
      std::int32_t isum = 0;
      for (int i = 0; i < 16; ++i) isum += code(block[at / 64], j, i) * x_block.qs[at % 32 + i];
      v = std::fma(static_cast<float>(isum) * scale(block[at / 64].scales[j]), x_block.d, v);
    }
    acc = acc + v;
  }
  return acc;
}

}  // namespace

const QuantFormat kFormatNVFP4{DType::kNVFP4, DType::kQ8A32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
