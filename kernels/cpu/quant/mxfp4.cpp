// Defines the weight format MXFP4. A block has 32 weights: one exponent byte e, and 16 bytes with two 4-bit floats
// each.
// A weight is w = d * q (rounded once), where d = 2^(e - 128), and q = kFp4Values[code] is in -12..12.
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

// Returns d for a block's exponent byte. q is twice the 4-bit float, so d is half the block's scale. e = 0 and 1 mean a
// subnormal d. e = 255 means 2^127, not NaN.
ZRT_INLINE float scale(std::uint8_t e) {
  return f32_from_bits(e < 2 ? 0x00200000u << e : (e - 1u) << 23);
}

ZRT_INLINE int low(const BlockMXFP4& block, int i) {
  return kFp4Values[block.qs[i] & 15];
}
ZRT_INLINE int high(const BlockMXFP4& block, int i) {
  return kFp4Values[block.qs[i] >> 4];
}

ZRT_INLINE float block_dot(const BlockMXFP4& block, const ActBlockQ8A32& x, float v) {
  const auto isum = static_cast<float>(dot_nibbles<BlockMXFP4, low, high>(block, x));
  return std::fma(isum * scale(block.e), x.d, v);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockMXFP4*>(row);
  for (std::int64_t b = 0; b < k / 32; ++b, y += 32)
    scale_nibbles<BlockMXFP4, low, high>(block[b], scale(block[b].e), y);
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_32_blocks<BlockMXFP4, block_dot>(row, act, k);
}

}  // namespace

const QuantFormat kFormatMXFP4{DType::kMXFP4, DType::kQ8A32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
