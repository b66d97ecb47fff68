// STATE_COPY: state[to[i]] = state[from[i]], word by word: bits are moved, not values.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void state_copy(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::Row::rows)) return;
  const uint64_t w = args.dim(symbol::Row::width);
  auto* state = args.buffer<uint32_t>(binding::StateCopy::state);
  const uint32_t* from =
      state + static_cast<uint64_t>(args.buffer<const int32_t>(binding::StateCopy::from)[blockIdx.x]) * w;
  uint32_t* to = state + static_cast<uint64_t>(args.buffer<const int32_t>(binding::StateCopy::to)[blockIdx.x]) * w;
  for (uint64_t i = blockIdx.y * blockDim.x + threadIdx.x; i < w; i += gridDim.y * blockDim.x) to[i] = from[i];
}
