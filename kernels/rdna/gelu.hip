// Computes GELU: y = x Phi(x), with Phi the cumulative normal distribution (defined by kernels/cpu/gelu.cpp). Each
// workgroup computes one row: thread i computes the elements i, i + 256, ...
#include "kernels/rdna/device.h"

ZRT_KERNEL(gelu, 256) {
  using namespace zinc_rt;
  using Operand = operand::Gelu;
  const uint32_t f = rdna::dim(args, rdna::symbol::Row::width);
  const uint64_t row = (uint64_t)rdna::group(0) * f;
  const float* x = rdna::buffer<const float>(args, Operand::x) + row;
  float* y = rdna::buffer<float>(args, Operand::y) + row;
  for (uint32_t i = rdna::thread(); i < f; i += 256) y[i] = exact::gelu(x[i]);
}
