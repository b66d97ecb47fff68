// ARGMAX: the index of the largest logit of each row. On a tie the lower index wins. NaN never wins; a row that has
// only NaN gives 0. Grid: one workgroup per row.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void argmax(const __grid_constant__ OpArgs args) {
  __shared__ uint32_t shared[64];
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::Row::rows)) return;
  const uint32_t v = args.dim(symbol::Row::width);
  const uint32_t best =
      argmax_row(args.buffer<const float>(binding::Argmax::logits) + static_cast<uint64_t>(blockIdx.x) * v, v, shared);
  if (threadIdx.x == 0) args.buffer<int32_t>(binding::Argmax::token)[blockIdx.x] = static_cast<int32_t>(best);
}
