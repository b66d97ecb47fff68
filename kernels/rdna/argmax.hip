// Computes ARGMAX: token[r] is the index of the largest logit of row r (defined by kernels/cpu/argmax.cpp). Each
// workgroup is one wave and computes one row (largest.h).
#include "kernels/rdna/largest.h"

ZRT_KERNEL(argmax, 32) {
  using namespace zinc_rt;
  using Operand = operand::Argmax;
  const uint32_t v = rdna::dim(args, rdna::symbol::Row::width), r = rdna::group(0);
  const uint32_t best = rdna::largest_index(rdna::buffer<const float>(args, Operand::logits) + (uint64_t)r * v, v);
  if (rdna::thread() == 0) rdna::buffer<int32_t>(args, Operand::token)[r] = (int32_t)best;
}
