// step_begin and step_end, the first and the last kernel of every graph (a graph is the launches of one step).
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

namespace {

constexpr uint32_t kAhead = 8;  // words that a thread loads over the bus before it stores the first

// Copies `words` words, shared by `stride` threads, of which this is number `first`.
__device__ __forceinline__ void copy_words(uint32_t* to, const uint32_t* from, uint32_t words, uint32_t first,
                                           uint32_t stride) {
  for (; first < words; first += kAhead * stride) {
    uint32_t v[kAhead];
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t at = first + i * stride;
      v[i] = at < words ? __ldcv(from + at) : 0;
    }
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i)
      if (first + i * stride < words) to[first + i * stride] = v[i];
  }
}

constexpr uint32_t kTokens = 1024;  // tokens that a workgroup looks at together
// What the threads of a workgroup know together about kTokens tokens of the step.
struct StepTokens {
  int32_t slot[kTokens + 1], pos[kTokens];
  // row: the n_rows tokens that are the last of their slot, whose page table row is copied
  uint32_t row[kTokens], n_rows;
  StepHeader header;
};

}  // namespace

// Takes the step's header from the ring in host memory, and copies the host memory that the step reads to the device.
// The first workgroups make one copy each, so that all copies are on the bus at once; the others copy the page tables,
// one each.
// A read over the bus takes 1.3 us, and reads of the same line wait for each other, about 0.9 us each. When 32
// workgroups whose warps all read the header and each token's slot did this, it took 240 us. So one thread reads each
// word, and tokens are loaded before it is known how many the step has.
extern "C" __global__ void __launch_bounds__(kBeginThreads) step_begin(const __grid_constant__ StepBeginArgs args) {
  __shared__ StepTokens tokens;
  wait_for_inputs();
  if (blockIdx.x < args.n_copies) {
    const CopyJob& job = args.copies[blockIdx.x];
    copy_words(job.to, job.from, job.words, threadIdx.x, blockDim.x);
    return;
  }
  const uint32_t table = blockIdx.x - args.n_copies;
  // The header is read by a thread of the last warp, because that warp has the fewest tokens to load.
  if (threadIdx.x == blockDim.x - 1) {
    const StepHeader* from = args.headers + *args.n_steps % kHeaders;
    tokens.header = StepHeader{__ldcv(&from->n_tokens), __ldcv(&from->n_outputs)};
    if (table == 0) *args.header = tokens.header;
  }
  if (args.n_pages == 0) return;
  const PageJob& job = args.pages[table];
  constexpr uint32_t kWarps = kBeginThreads / 32;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (uint32_t base = 0; base < job.room; base += kTokens) {
    // Values behind the step's last token are left from an earlier step and are not used.
    for (uint32_t i = threadIdx.x; i <= kTokens && base + i < job.room; i += blockDim.x) {
      tokens.slot[i] = __ldcv(job.slot + base + i);
      if (i < kTokens) tokens.pos[i] = __ldcv(job.pos + base + i);
    }
    if (threadIdx.x == 0) tokens.n_rows = 0;
    __syncthreads();
    const uint32_t n_tokens = tokens.header.n_tokens;
    if (base >= n_tokens) return;
    // Of the tokens of a slot in this step, the last has the highest position, so it needs the most pages. Only its row
    // is copied.
    for (uint32_t i = threadIdx.x; i < kTokens && base + i < n_tokens; i += blockDim.x)
      if (base + i + 1 == n_tokens || tokens.slot[i + 1] != tokens.slot[i])
        tokens.row[atomicAdd(&tokens.n_rows, 1u)] = i;
    __syncthreads();
    for (uint32_t r = 0; r < tokens.n_rows; ++r) {
      const uint32_t i = tokens.row[r], n_pages = min(static_cast<uint32_t>(tokens.pos[i]) / 16 + 1, job.width);
      const uint64_t row = static_cast<uint64_t>(tokens.slot[i]) * job.width;
      // The warps copy the pieces of a row in turn. Each row begins with another warp, so that short rows do not all
      // fall to the same one.
      constexpr uint32_t kPiece = 32 * kAhead;
      for (uint32_t piece = (warp - r) % kWarps; piece * kPiece < n_pages; piece += kWarps) {
        const uint64_t at = row + piece * kPiece;
        copy_words(reinterpret_cast<uint32_t*>(job.to + at), reinterpret_cast<const uint32_t*>(job.from + at),
                   min(n_pages - piece * kPiece, kPiece), lane, 32);
      }
    }
    __syncthreads();
  }
}

// Adds 1 to the number of completed steps, for the next step_begin and for the host, which waits for it.
extern "C" __global__ void step_end(const __grid_constant__ StepEndArgs args) {
  wait_for_inputs();
  const uint32_t done = *args.n_steps + 1;
  *args.n_steps = done;
  __threadfence_system();
  *static_cast<volatile uint32_t*>(args.done) = done;
}
