// STREAM_OUT: appends an entry (sequence number, slot, token, row) for each output row to a ring in host memory. Word 0
// of the ring is the count of entries written so far. It is updated after the entries, so the host never reads an
// unfinished one.
// The kernel also runs the STORE_REQUEST_STATE of the same rows, if the planner joins them: it then stores each token
// in the slot table too.
// Grid: one workgroup; each thread writes every blockDim.x-th entry.
#include "kernels/cuda/request_state.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void stream_out(const __grid_constant__ OpArgs args) {
  __shared__ uint32_t first;
  wait_for_inputs();
  let_next_start();
  const uint32_t n = args.dim(symbol::StreamOut::rows), entries = args.dim(symbol::StreamOut::entries);
  auto* ring = args.buffer<volatile uint32_t>(binding::StreamOut::ring);
  // Only one thread reads this word, because reads of host memory wait for each other (step_begin).
  if (threadIdx.x == 0) first = ring[0];
  __syncthreads();
  const uint32_t count = first;
  auto* slots = args.buffer<uint32_t>(binding::StreamOut::slots);
  const uint32_t s = args.dim(symbol::StreamOut::s), fields = args.dim(symbol::StreamOut::fields);
  const uint32_t field = args.constants<push::RequestState>().field;
  for (uint32_t r = threadIdx.x; r < n; r += blockDim.x) {
    volatile uint32_t* entry = ring + 4 * (1 + (count + r) % (entries - 1));
    const auto slot = static_cast<uint32_t>(args.buffer<const int32_t>(binding::StreamOut::slot)[r]);
    const auto token = static_cast<uint32_t>(args.buffer<const int32_t>(binding::StreamOut::token)[r]);
    entry[0] = count + r;
    entry[1] = slot;
    entry[2] = token;
    entry[3] = r;
    if (slots != nullptr && slot < s && field < fields &&
        is_last_of_slot(args.buffer<const int32_t>(binding::StreamOut::slot), r, n))
      slots[static_cast<uint64_t>(slot) * fields + field] = token;
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) ring[0] = count + n;
}
