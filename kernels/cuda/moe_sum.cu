// MOE_SUM: z[t] = sum over token t's choices of weight * y (moe_sum.cuh). If `hidden` is given, the kernel also
// computes hidden[t] += z[t], so that it serves the ADD that follows a MOE_SUM, and the end of MOE_DOWN_ACC.
// choices_y is [tokens, k * d], where k is the number of experts per token. expert_scale, z and hidden may be null.
// Grid: (tokens, parts of a row). Each thread computes every n-th column.
#include "kernels/cuda/moe_sum.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void moe_sum(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t t = blockIdx.x, d = args.dim(symbol::ChoiceSum::d);
  if (t >= args.dim(symbol::ChoiceSum::rows)) return;
  const Choices choices(binding::ChoiceSum{}, args, t, d, args.dim(symbol::ChoiceSum::k),
                        args.symbols[symbol::ChoiceSum::e]);
  for (uint32_t i = blockIdx.y * blockDim.x + threadIdx.x; i < d; i += gridDim.y * blockDim.x) {
    const float z = sum_choices<float>(choices, i);
    if (args.buffers[binding::ChoiceSum::z] != nullptr)
      args.buffer<float>(binding::ChoiceSum::z)[static_cast<uint64_t>(t) * d + i] = z;
    if (args.buffers[binding::ChoiceSum::hidden] != nullptr) {
      float& hidden = args.buffer<float>(binding::ChoiceSum::hidden)[static_cast<uint64_t>(t) * d + i];
      hidden = hidden + z;
    }
  }
}
