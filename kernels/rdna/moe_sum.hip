// Computes MOE_SUM: z[t] = the sum over a token's k choices j of weight_j * y[t][j], where weight_j = weights[t][j],
// times expert_scale[ids[t][j]] if expert_scale is given (defined by kernels/cpu/moe_sum.cpp). If `hidden` is given,
// the sum is added to hidden[t] in place, so that the kernel also computes the ADD after MOE_SUM and the end of
// MOE_DOWN_ACC. expert_scale, z and hidden are null if they are absent.
// Grid: (tokens, pieces of 256 values of a row). Each thread computes one value, with the choices in order.
#include "kernels/rdna/device.h"

ZRT_KERNEL(choice_sum, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Buffer = binding::ChoiceSum;
  using Symbol = symbol::ChoiceSum;
  const uint32_t d = dim(args, Symbol::d), k = dim(args, Symbol::k), e = args.symbols[Symbol::e], t = group(0),
                 i = group(1) * 256 + thread();
  if (i >= d) return;
  const float *y = buffer<const float>(args, Buffer::y) + (uint64_t)t * k * d,
              *weights = buffer<const float>(args, Buffer::weights) + (uint64_t)t * k;
  const int32_t* ids = buffer<const int32_t>(args, Buffer::ids) + (uint64_t)t * k;
  float sum = 0.0f;
  for (uint32_t j = 0; j < k; ++j) {
    float weight = weights[j];
    if (args.buffers[Buffer::expert_scale] != 0) {
      const auto id = (uint32_t)ids[j];
      weight = id < e ? weight * buffer<const float>(args, Buffer::expert_scale)[id] : quiet_nan();
    }
    sum = __builtin_fmaf(weight, y[(uint64_t)j * d + i], sum);
  }
  if (args.buffers[Buffer::z] != 0) buffer<float>(args, Buffer::z)[(uint64_t)t * d + i] = sum;
  if (args.buffers[Buffer::hidden] != 0) {
    float& hidden = buffer<float>(args, Buffer::hidden)[(uint64_t)t * d + i];
    hidden = hidden + sum;
  }
}
