// Stages of shared memory that some warps fill and others use.
#pragma once

#include "kernels/cuda/device.cuh"

#if defined(ZRT_HAS_WGMMA)
namespace zinc_rt::cuda {

// A ring of stages in shared memory.
struct Stages {
  uint8_t* at;
  uint64_t *full, *empty;  // a barrier a stage
  uint32_t bytes, n, stage = 0, parity = 0;

  __device__ __forceinline__ uint8_t* address() const { return at + stage * bytes; }
  __device__ __forceinline__ void wait_full() const { barrier_wait(full + stage, parity); }
  // For those who take stages in turn, where another one had this stage in the phase before. Copies may end in another
  // order than they were asked for. So that phase may still be open, and the one before it has the parity of this one.
  // Once the other one has released the stage, its phase is over; and the phase of this turn cannot be over before this
  // one releases the stage.
  __device__ __forceinline__ void wait_full_in_turn() const {
    wait_empty();
    wait_full();
  }
  __device__ __forceinline__ void wait_empty() const { barrier_wait(empty + stage, parity ^ 1); }
  // A thread has written to the stage, or is done with it. One arrival of a warp would do, after the warp has met;
  // racecheck does not know that order of its lanes.
  __device__ __forceinline__ void arrive_full() const { barrier_arrive(full + stage); }
  __device__ __forceinline__ void release() const { barrier_arrive(empty + stage); }
  // A warp is done with a stage that bulk copies fill.
  __device__ __forceinline__ void release_by_warp() const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(empty + stage);
  }
  __device__ __forceinline__ uint32_t before() const { return (stage == 0 ? n : stage) - 1; }
  __device__ __forceinline__ void advance() { advance_if(true); }
  __device__ __forceinline__ void advance_by(uint32_t by) {  // at most n
    stage += by;
    if (stage < n) return;
    stage -= n;
    parity ^= 1;
  }
  __device__ __forceinline__ void advance_if(bool moves) {
    const bool wraps = moves && stage + 1 == n;
    stage = wraps ? 0 : stage + (moves ? 1 : 0);
    parity ^= wraps ? 1 : 0;
  }
};

}  // namespace zinc_rt::cuda
#endif
