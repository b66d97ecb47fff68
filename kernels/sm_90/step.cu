// The first and the last kernel of every graph.
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;

// Takes the step's numbers and copies what the step reads of host memory to the device. A workgroup a copy, so that all
// are on the bus at once; then kPageBlocks for each page table.
extern "C" __global__ void step_begin(const __grid_constant__ StepBeginArgs args) {
  wait_for_inputs();
  if (blockIdx.x < args.n_copies) {
    const CopyJob& job = args.copies[blockIdx.x];
    constexpr uint32_t kAhead = 8;
    for (uint32_t first = threadIdx.x; first < job.words; first += kAhead * blockDim.x) {
      uint32_t v[kAhead];
#pragma unroll
      for (uint32_t i = 0; i < kAhead; ++i) {
        const uint32_t at = first + i * blockDim.x;
        v[i] = at < job.words ? __ldcv(job.from + at) : 0;
      }
#pragma unroll
      for (uint32_t i = 0; i < kAhead; ++i)
        if (first + i * blockDim.x < job.words) job.to[first + i * blockDim.x] = v[i];
    }
    return;
  }
  const uint32_t n_steps = *args.n_steps, block = blockIdx.x - args.n_copies;
  const StepHeader* from = args.headers + n_steps % kHeaders;
  const uint32_t n_tokens = __ldcv(&from->n_tokens);
  if (block == 0 && threadIdx.x == 0) *args.header = StepHeader{n_tokens, __ldcv(&from->n_outputs)};
  if (args.n_pages == 0) return;
  const PageJob& job = args.pages[block / kPageBlocks];
  for (uint32_t t = block % kPageBlocks; t < n_tokens; t += kPageBlocks) {
    const int32_t slot = __ldcv(job.slot + t), position = __ldcv(job.pos + t);
    // The slot's last position reads the most pages.
    if (t + 1 < n_tokens && __ldcv(job.slot + t + 1) == slot) continue;
    const uint64_t row = static_cast<uint64_t>(slot) * job.width;
    const uint32_t n_pages = static_cast<uint32_t>(position) / 16 + 1;
    for (uint32_t p = threadIdx.x; p < n_pages && p < job.width; p += blockDim.x)
      job.to[row + p] = __ldcv(job.from + row + p);
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
