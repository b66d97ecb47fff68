// Rows of floats as codes of two digits, whose products with codes are exact (kernels/common/kv_integer.h).
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

// The scale of a row of floats as codes, and what makes codes of them: by the rule of QUANTIZE.
struct CodeScale {
  float inverse, d;
};
ZRT_DEVICE CodeScale code_scale(float amax) {
  if (amax > 0x1p120f) return {0.0f, quiet_nan()};
  if (amax < 0x1p-100f) return {0.0f, 0.0f};
  return {exact::div(digits::kMost, amax), exact::div(amax, digits::kMost)};
}
// |x|, or infinity where x is a NaN: the largest of them is finite where all x are.
ZRT_DEVICE float magnitude(float x) {
  return x == x ? (x < 0 ? -x : x) : __builtin_inff();
}
// Where the inverse is 0 so is the code, whatever x is.
ZRT_DEVICE int32_t code_of(float x, const CodeScale& scale) {
  return scale.inverse > 0.0f ? (int32_t)exact::round_int(x * scale.inverse) : 0;
}

}  // namespace zinc_rt::rdna
