// Defines the weight format FIXED16, to which F16 and BF16 matrices are converted when a model is loaded. A block has
// 256 codes of 16 bits, |code| <= 32,639, as two planes of digits (kernels/common/digits.h), and a scale d, which is a
// power of two.
// A weight is w = d * code, exactly.
// dot(): a code of x has two digits, too. A = sum of code * high_x and B = sum of code * low_x are exact in 32 bits.
//   For blocks ascending, v = fma(float(A), 256, float(B)) * d, then acc = fma(v, d_x, acc).
#include "base/multiversion.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE float group_dot(const BlockFixed16& block, const ActBlockQ16A256& x) {
  std::int32_t high = 0, low = 0;
  ZRT_ROLLED
  for (int i = 0; i < kGroup; ++i) {
    const auto code = static_cast<std::int16_t>(block.high[i] * 256 + block.low[i]);
    high += static_cast<std::int32_t>(code) * x.high[i];
    low += static_cast<std::int32_t>(code) * x.low[i];
  }
  return std::fma(static_cast<float>(high), 256.0f, static_cast<float>(low)) * bf16_to_f32(block.d);
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* block = static_cast<const BlockFixed16*>(row);
  for (std::int64_t g = 0; g < k / kGroup; ++g, y += kGroup) {
    const float d = bf16_to_f32(block[g].d);
    for (int i = 0; i < kGroup; ++i) y[i] = d * static_cast<float>(block[g].high[i] * 256 + block[g].low[i]);
  }
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  const auto* block = static_cast<const BlockFixed16*>(row);
  const auto* x = static_cast<const ActBlockQ16A256*>(act);
  float acc = 0;
  for (std::int64_t g = 0; g < k / kGroup; ++g) acc = std::fma(group_dot(block[g], x[g]), x[g].d, acc);
  return acc;
}

}  // namespace

const QuantFormat kFormatFixed16{DType::kFixed16, DType::kQ16A256, dequantize_row, dot};

}  // namespace zinc_rt::cpu
