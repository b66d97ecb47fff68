// BF16 rows: w[k] = bf16_to_f32(element), exact; activations are f32.
// dot: groups of 256 ascending, acc = acc + v. In a group 16 lanes from +0: lane = k mod 16, lane = fma(w, x, lane), k
// ascending; elements past the end are skipped. Fold to v: l and l + 8, then l + 4, l + 2, l + 1.
#include "base/multiversion.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* w = static_cast<const std::uint16_t*>(row);
  for (std::int64_t i = 0; i < k; ++i) y[i] = bf16_to_f32(w[i]);
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_float_groups<std::uint16_t, bf16_to_f32>(row, act, k);
}

}  // namespace

const QuantFormat kFormatBF16{DType::kBF16, DType::kF32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
