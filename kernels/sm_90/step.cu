// The first and the last kernel of every graph.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

// Takes the step's numbers and copies what the step reads of host memory to the device.
extern "C" __global__ void step_begin(const __grid_constant__ StepBeginArgs args) {
  wait_for_inputs();
  const StepHeader* from = args.headers + *args.n_steps % kHeaders;
  const uint32_t n_tokens = static_cast<volatile const uint32_t&>(from->n_tokens);
  const uint32_t n_outputs = static_cast<volatile const uint32_t&>(from->n_outputs);
  if (blockIdx.x == 0 && threadIdx.x == 0) *args.header = StepHeader{n_tokens, n_outputs};
  const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, n_threads = gridDim.x * blockDim.x;
  for (uint32_t i = 0; i < args.n_copies; ++i) {
    const auto* words = static_cast<const volatile uint32_t*>(args.copies[i].from);
    for (uint32_t w = thread; w < args.copies[i].words; w += n_threads) args.copies[i].to[w] = words[w];
  }
  for (uint32_t i = 0; i < args.n_pages; ++i) {
    const PageJob& job = args.pages[i];
    const auto* slots = static_cast<const volatile int32_t*>(job.slot);
    const auto* positions = static_cast<const volatile int32_t*>(job.pos);
    for (uint32_t t = blockIdx.x; t < n_tokens; t += gridDim.x) {
      const int32_t slot = slots[t];
      if (t + 1 < n_tokens && slots[t + 1] == slot) continue;  // the slot's last position reads the most pages
      const uint64_t row = static_cast<uint64_t>(slot) * job.width;
      const uint32_t n_pages = static_cast<uint32_t>(positions[t]) / 16 + 1;
      for (uint32_t p = threadIdx.x; p < n_pages && p < job.width; p += blockDim.x)
        job.to[row + p] = static_cast<const volatile int32_t*>(job.from)[row + p];
    }
  }
}

// Counts the step, for the next one's numbers and for the host, which waits for it.
extern "C" __global__ void step_end(const __grid_constant__ StepEndArgs args) {
  wait_for_inputs();
  const uint32_t done = *args.n_steps + 1;
  *args.n_steps = done;
  __threadfence_system();
  *static_cast<volatile uint32_t*>(args.done) = done;
}
