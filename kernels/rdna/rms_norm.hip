// RMS_NORM: in each group of a row y = (x * r) * w, r = rsqrt(fma(sum(x^2), 1/group, eps)) (kernels/cpu/rms_norm.cpp).
// A wave a row. The sum is the float dot of rule 4: half a wave takes 256 values, a lane those of one k mod 16.
#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

ZRT_DEVICE float sum_of_squares(const float* x, uint32_t n) {
  const uint32_t lane = thread() % 16, half = thread() / 16;
  float acc = 0.0f;
  for (uint32_t first = 0; first < n; first += 512) {
    float v = 0.0f;
    for (uint32_t i = 0; i < 256; i += 16) {
      const uint32_t at = first + half * 256 + i + lane;
      if (at < n) v = __builtin_fmaf(x[at], x[at], v);
    }
    for (uint32_t width = 8; width > 0; width /= 2) v = v + from_lane(v, thread() + width);
    acc = acc + from_lane(v, 0);
    if (first + 256 < n) acc = acc + from_lane(v, 16);
  }
  return acc;
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(rms_norm, 32) {
  using namespace zinc_rt;
  using Operand = operand::RmsNorm;
  const uint32_t d = rdna::dim(args, 0);
  const auto push = rdna::constants<push::RmsNorm>(args);
  const uint64_t row = (uint64_t)rdna::group(0) * d;
  const float *x = rdna::buffer<const float>(args, Operand::x) + row, *w = rdna::buffer<const float>(args, Operand::w);
  float* y = rdna::buffer<float>(args, Operand::y) + row;
  const float inverse = 1.0f / (float)push.group;
  for (uint32_t g = 0; g < d; g += push.group) {
    const float r = exact::rsqrt(__builtin_fmaf(rdna::sum_of_squares(x + g, push.group), inverse, push.eps));
    for (uint32_t i = rdna::thread(); i < push.group; i += 32) {
      const float v = x[g + i] * r;
      y[g + i] = w != nullptr ? v * w[i] : v;
    }
  }
}
