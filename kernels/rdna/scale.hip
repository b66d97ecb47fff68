// SCALE: y = (x * w) * scale, w one number or absent (kernels/cpu/scale.cpp).
#include "kernels/rdna/device.h"

ZRT_KERNEL(scale, 256) {
  using namespace zinc_rt;
  using Operand = operand::Scale;
  const uint32_t d = rdna::dim(args, rdna::symbol::Row::width);
  const uint64_t row = (uint64_t)rdna::group(0) * d;
  const float factor = rdna::constants<push::Scale>(args).scale;
  const float *x = rdna::buffer<const float>(args, Operand::x) + row, *w = rdna::buffer<const float>(args, Operand::w);
  float* y = rdna::buffer<float>(args, Operand::y) + row;
  for (uint32_t i = rdna::thread(); i < d; i += 256) y[i] = (w != nullptr ? x[i] * w[0] : x[i]) * factor;
}
