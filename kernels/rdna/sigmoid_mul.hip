// Computes SIGMOID_MUL: y = x * sigmoid(gate) (defined by kernels/cpu/sigmoid_mul.cpp). Each workgroup computes one
// row: thread i computes the elements i, i + 256, ...
#include "kernels/rdna/device.h"

ZRT_KERNEL(sigmoid_mul, 256) {
  using namespace zinc_rt;
  using Operand = operand::SigmoidMul;
  const uint32_t d = rdna::dim(args, rdna::symbol::Row::width);
  const uint64_t row = (uint64_t)rdna::group(0) * d;
  const float *x = rdna::buffer<const float>(args, Operand::x) + row,
              *gate = rdna::buffer<const float>(args, Operand::gate) + row;
  float* y = rdna::buffer<float>(args, Operand::y) + row;
  for (uint32_t i = rdna::thread(); i < d; i += 256) y[i] = x[i] * exact::sigmoid(gate[i]);
}
