// Computes ADD: z = x + y for rows of d floats (defined by kernels/cpu/add.cpp). Each workgroup computes one row:
// thread i computes the elements i, i + 256, i + 512, ...
#include "kernels/rdna/device.h"

ZRT_KERNEL(add, 256) {
  using namespace zinc_rt;
  using Operand = operand::Add;
  const uint32_t d = rdna::dim(args, rdna::symbol::Row::width);
  const uint64_t row = (uint64_t)rdna::group(0) * d;
  const float *x = rdna::buffer<const float>(args, Operand::x) + row,
              *y = rdna::buffer<const float>(args, Operand::y) + row;
  float* z = rdna::buffer<float>(args, Operand::z) + row;
  for (uint32_t i = rdna::thread(); i < d; i += 256) z[i] = x[i] + y[i];
}
