#include "kernels/cpu/quant/quant.h"

#include "base/multiversion.h"
#include "kernels/cpu/quant/formats.h"
#include "kernels/cpu/quant/walk.h"

namespace zinc_rt::cpu {
namespace {

#define ZRT_FORMAT_ROW(name) &kFormat##name,
constexpr const QuantFormat* kFormats[] = {ZRT_WEIGHT_FORMATS(ZRT_FORMAT_ROW)};
#undef ZRT_FORMAT_ROW

ZRT_MULTIVERSION float dot_group(const float* w, const float* x, std::int64_t n) {
  return dot_float_group(w, x, n);
}

}  // namespace

std::span<const QuantFormat* const> quant_formats() {
  return kFormats;
}

const QuantFormat* quant_format(DType dtype) {
  for (const QuantFormat* format : kFormats)
    if (format->dtype == dtype) return format;
  return nullptr;
}

float dot_f32(const QuantFormat& format, const void* row, const float* x, std::int64_t k) {
  const auto* bytes = static_cast<const std::uint8_t*>(row);
  float acc = 0;
  for (std::int64_t first = 0; first < k; first += kGroup) {
    const std::int64_t n = k - first < kGroup ? k - first : kGroup;
    float w[kGroup];
    format.dequantize_row(bytes + row_bytes(format.dtype, static_cast<std::uint64_t>(first)), w, n);
    acc = acc + dot_group(w, x + first, n);
  }
  return acc;
}

}  // namespace zinc_rt::cpu
