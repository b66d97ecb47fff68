// Computes SOFTCAP: y = cap * tanh(x / cap), with 1 / cap by exact::rcp (defined by kernels/cpu/softcap.cpp). Each
// workgroup computes one row: thread i computes the elements i, i + 256, ...
#include "kernels/rdna/device.h"

ZRT_KERNEL(softcap, 256) {
  using namespace zinc_rt;
  using Operand = operand::Softcap;
  const uint32_t d = rdna::dim(args, rdna::symbol::Row::width);
  const uint64_t row = (uint64_t)rdna::group(0) * d;
  const float cap = rdna::constants<push::Softcap>(args).cap, inverse = exact::rcp(cap);
  const float* x = rdna::buffer<const float>(args, Operand::x) + row;
  float* y = rdna::buffer<float>(args, Operand::y) + row;
  for (uint32_t i = rdna::thread(); i < d; i += 256) y[i] = cap * exact::tanh(x[i] * inverse);
}
