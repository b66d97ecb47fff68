// POOL_MEAN: the mean of a text's rows up to each of its tokens (kernels/cpu/pool_mean.cpp). Grid: tiles of columns;
// tokens, where the first token of each slot does all of the slot's tokens in order.
#include "kernels/rdna/device.h"

ZRT_KERNEL(pool_mean, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::PoolMean;
  const uint32_t d = dim(args, symbol::PoolMean::d), n = dim(args, symbol::PoolMean::n),
                 column = group(0) * 256 + thread(), first = group(1);
  const int32_t *pos = buffer<const int32_t>(args, Operand::pos), *slot = buffer<const int32_t>(args, Operand::slot);
  if (column >= d || (first > 0 && slot[first - 1] == slot[first])) return;
  float& stored = buffer<float>(args, Operand::sum)[(uint64_t)(uint32_t)slot[first] * d + column];
  float sum = stored;
  for (uint32_t t = first; t < n && slot[t] == slot[first]; ++t) {
    const float x = buffer<const float>(args, Operand::x)[(uint64_t)t * d + column];
    sum = pos[t] == 0 ? x : sum + x;
    buffer<float>(args, Operand::y)[(uint64_t)t * d + column] = exact::div(sum, (float)(pos[t] + 1));
  }
  stored = sum;
}
