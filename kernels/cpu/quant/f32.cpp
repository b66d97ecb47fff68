// Defines the weight format F32. A weight w[k] is the element itself. Activations are f32.
// dot() sums in groups of 256 elements, groups ascending: acc = acc + v. Within a group there are 16 lanes that begin
// at +0. For k ascending, lane (k mod 16) becomes fma(w, x, lane). Elements past the end are skipped. The lanes are
// folded to v by adding lanes l and l + 8, then l and l + 4, then l + 2, then l + 1.
#include "base/multiversion.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

ZRT_INLINE float as_is(float value) {
  return value;
}

ZRT_MULTIVERSION void dequantize_row(const void* row, float* y, std::int64_t k) {
  const auto* w = static_cast<const float*>(row);
  for (std::int64_t i = 0; i < k; ++i) y[i] = as_is(w[i]);
}

ZRT_MULTIVERSION float dot(const void* row, const void* act, std::int64_t k) {
  return dot_float_groups<float, as_is>(row, act, k);
}

}  // namespace

const QuantFormat kFormatF32{DType::kF32, DType::kF32, dequantize_row, dot};

}  // namespace zinc_rt::cpu
