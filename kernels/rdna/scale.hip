// Computes SCALE: y = (x * w) * scale, where w is one stored number or absent (defined by kernels/cpu/scale.cpp). Each
// workgroup computes one row: thread i computes the elements i, i + 256, ...
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
