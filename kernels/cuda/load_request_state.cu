// LOAD_REQUEST_STATE: value[r] = slots[slot[r]][field]. If the slot or the field is outside the table, value[r] becomes
// 0xFFFFFFFF. Grid: one thread per r.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void load_request_state(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x * blockDim.x + threadIdx.x, fields = args.dim(symbol::RequestState::fields);
  if (r >= args.dim(symbol::RequestState::rows)) return;
  const uint32_t field = args.constants<push::RequestState>().field;
  const auto slot = static_cast<uint32_t>(args.buffer<const int32_t>(binding::LoadRequestState::slot)[r]);
  const bool inside = slot < args.dim(symbol::RequestState::s) && field < fields;
  args.buffer<uint32_t>(binding::LoadRequestState::value)[r] =
      inside
          ? args.buffer<const uint32_t>(binding::LoadRequestState::slots)[static_cast<uint64_t>(slot) * fields + field]
          : 0xFFFFFFFFu;
}
