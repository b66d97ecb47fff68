// Synchronization for a ring of stages in shared memory: some warps (or bulk copies) fill a stage, other warps use and
// then release it.
#pragma once

#include "kernels/cuda/device.cuh"

#if defined(ZRT_HAS_WGMMA)
namespace zinc_rt::cuda {

// Stages is one warp's view of the ring: its current stage and the parity of that stage's barriers. Each role (filling,
// using) advances a Stages of its own.
struct Stages {
  uint8_t* at;
  // One barrier per stage. `full` completes when the stage is filled, `empty` when all users have released it.
  uint64_t *full, *empty;
  uint32_t bytes, n, stage = 0, parity = 0;

  __device__ __forceinline__ uint8_t* address() const { return at + stage * bytes; }
  // Waits until the current stage is filled.
  __device__ __forceinline__ void wait_full() const { barrier_wait(full + stage, parity); }
  // For warpgroups that use stages in turn, so that this stage was used by a different warpgroup in its previous phase.
  // A barrier distinguishes its phases only by parity, and bulk copies may end in another order than they were started.
  // So the previous filling of this stage may still be running. The phase before that one has the parity that this
  // warpgroup waits for, so wait_full() alone could return too early.
  // Waiting for the release of the previous phase first rules that out: the previous filling has then ended. The phase
  // that is waited for cannot end early either, because it needs this warpgroup's own release.
  __device__ __forceinline__ void wait_full_in_turn() const {
    wait_empty();
    wait_full();
  }
  // Waits until all users have released the current stage.
  __device__ __forceinline__ void wait_empty() const { barrier_wait(empty + stage, parity ^ 1); }
  // arrive_full(): this thread has written its part of the stage. release(): this thread has finished reading the
  // stage. Every thread arrives. One arrival per warp after a __syncwarp would suffice, but compute-sanitizer's
  // racecheck does not recognize that order and would report races.
  __device__ __forceinline__ void arrive_full() const { barrier_arrive(full + stage); }
  __device__ __forceinline__ void release() const { barrier_arrive(empty + stage); }
  // This warp has finished reading a stage that is filled by bulk copies. One lane arrives for the warp.
  __device__ __forceinline__ void release_by_warp() const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(empty + stage);
  }
  // Returns the number of the stage before the current one.
  __device__ __forceinline__ uint32_t before() const { return (stage == 0 ? n : stage) - 1; }
  __device__ __forceinline__ void advance() { advance_if(true); }
  __device__ __forceinline__ void advance_by(uint32_t by) {  // by is at most n.
    stage += by;
    if (stage < n) return;
    stage -= n;
    parity ^= 1;
  }
  // Moves to the next stage if `moves`, without a branch.
  __device__ __forceinline__ void advance_if(bool moves) {
    const bool wraps = moves && stage + 1 == n;
    stage = wraps ? 0 : stage + (moves ? 1 : 0);
    parity ^= wraps ? 1 : 0;
  }
};

}  // namespace zinc_rt::cuda
#endif
