// Computes MOE_ADD_BIAS: y[t][j] += bias[ids[t][j]], for the rows of a product of experts (defined by
// kernels/cpu/moe_add_bias.cpp). Each workgroup computes the rows of one token: thread i has the elements i, i + 256,
// ...
#include "kernels/rdna/device.h"

ZRT_KERNEL(moe_add_bias, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::MoeAddBias;
  using Symbol = symbol::MoeAddBias;
  const uint32_t k = dim(args, Symbol::k), e = args.symbols[Symbol::e], f = dim(args, Symbol::f), t = group(0);
  const int32_t* ids = buffer<const int32_t>(args, Operand::ids) + (uint64_t)t * k;
  const float* bias = buffer<const float>(args, Operand::bias);
  float* y = buffer<float>(args, Operand::y) + (uint64_t)t * k * f;
  for (uint32_t i = thread(); i < k * f; i += 256) {
    const auto id = (uint32_t)ids[i / f];
    if (id < e) y[i] = y[i] + bias[(uint64_t)id * f + i % f];
  }
}
