// LOAD_REQUEST_STATE: value[r] = slots[slot[r]][field]; outside the table 0xFFFFFFFF. Symbols: n, s, fields.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void load_request_state(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x * blockDim.x + threadIdx.x, fields = args.dim(2);
  if (r >= args.dim(0)) return;
  const uint32_t field = args.constants<push::RequestState>().field;
  const auto slot = static_cast<uint32_t>(args.buffer<const int32_t>(1)[r]);
  const bool inside = slot < args.dim(1) && field < fields;
  args.buffer<uint32_t>(2)[r] =
      inside ? args.buffer<const uint32_t>(0)[static_cast<uint64_t>(slot) * fields + field] : 0xFFFFFFFFu;
}
