// Computes POOL_MEAN: y[t], the mean of a text's rows of x up to token t (defined by kernels/cpu/pool_mean.cpp). Each
// token continues the sum of the token before. Therefore the workgroups of a slot's first token compute all tokens of
// the slot in order, and the other workgroups return at once.
// Grid: (tiles of 256 columns, tokens). Each thread computes one column. REQUIRES: tokens of one slot are neighbours,
// in the order of their positions.
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
