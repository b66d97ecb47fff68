// Converts rows of floats to 16-bit codes of two digits (kernels/common/digits.h). Products of such codes with the
// codes of an integer KV cache are exact integers (kernels/common/kv_integer.h).
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

// How the values x of a row become codes: code = round(x * inverse), and d * code is about x. amax is the largest |x|
// of the row. The rule is that of QUANTIZE with 32,639 as the largest code (kernels/cpu/quantize.cpp): all codes are 0
// if amax is below 2^-100, and d is NaN if amax is above 2^120.
struct CodeScale {
  float inverse, d;
};
ZRT_DEVICE CodeScale code_scale(float amax) {
  if (amax > 0x1p120f) return {0.0f, quiet_nan()};
  if (amax < 0x1p-100f) return {0.0f, 0.0f};
  return {exact::div(digits::kMost, amax), exact::div(amax, digits::kMost)};
}
// Returns |x|, but infinity if x is a NaN. So the largest magnitude of a row is finite only if all its values are
// finite.
ZRT_DEVICE float magnitude(float x) {
  return x == x ? (x < 0 ? -x : x) : __builtin_inff();
}
// Returns the code of x. If scale.inverse is 0, the code is 0, even if x is a NaN or infinite.
ZRT_DEVICE int32_t code_of(float x, const CodeScale& scale) {
  return scale.inverse > 0.0f ? (int32_t)exact::round_int(x * scale.inverse) : 0;
}

}  // namespace zinc_rt::rdna
