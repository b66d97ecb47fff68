// STORE_REQUEST_STATE: slots[slot[r]][field] = value[r]. If the slot or the field is outside the table, nothing is
// stored. If rows have the same slot, the value of the last of them stays. Grid: one thread per r.
#include "kernels/cuda/request_state.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void store_request_state(const __grid_constant__ OpArgs args) {
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x * blockDim.x + threadIdx.x, fields = args.dim(symbol::RequestState::fields);
  if (r >= args.dim(symbol::RequestState::rows)) return;
  const uint32_t field = args.constants<push::RequestState>().field;
  const auto slot = static_cast<uint32_t>(args.buffer<const int32_t>(binding::StoreRequestState::slot)[r]);
  const bool is_last = is_last_of_slot(args.buffer<const int32_t>(binding::StoreRequestState::slot), r,
                                       args.dim(symbol::RequestState::rows));
  if (is_last && slot < args.dim(symbol::RequestState::s) && field < fields)
    args.buffer<uint32_t>(binding::StoreRequestState::slots)[static_cast<uint64_t>(slot) * fields + field] =
        args.buffer<const uint32_t>(binding::StoreRequestState::value)[r];
}
