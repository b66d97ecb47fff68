// The shape of the workgroups of LOGPROBS (logprobs.cu). Only the planner and that kernel need it.
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

// Threads that compute exponentials, and behind them the warp that adds them up.
constexpr uint32_t kLogprobComputing = 512, kLogprobThreads = kLogprobComputing + 32;
// Exponentials that are computed between two barriers. Two tiles of them, doubles, are the dynamic shared memory.
constexpr uint32_t kLogprobTile = 2048, kLogprobShared = 2 * kLogprobTile * 8;

}  // namespace zinc_rt::cuda
