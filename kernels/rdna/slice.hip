// Computes SLICE: copies the columns [first, first + width) of each group of a row, y[t][g][i] = x[t][g][first + i]
// (defined by kernels/cpu/slice.cpp). Each workgroup computes one row.
#include "kernels/rdna/device.h"

ZRT_KERNEL(slice, 256) {
  using namespace zinc_rt;
  using Operand = operand::Slice;
  const auto c = rdna::constants<push::Slice>(args);
  const uint64_t t = rdna::group(0);
  const float* x = rdna::buffer<const float>(args, Operand::x) + t * c.groups * c.group + c.first;
  float* y = rdna::buffer<float>(args, Operand::y) + t * c.groups * c.width;
  for (uint32_t g = 0; g < c.groups; ++g)
    for (uint32_t i = rdna::thread(); i < c.width; i += 256) y[g * c.width + i] = x[(uint64_t)g * c.group + i];
}
