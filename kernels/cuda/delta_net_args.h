// The shape of the workgroups of SSM_DELTA_NET (ssm_delta_net.cu). Only the planner and that kernel need it.
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

// Columns of a head's state that a workgroup computes: one per lane of its only warp.
constexpr uint32_t kDeltaColumns = 32;
// A lane keeps its column in registers if the state has at most this many rows, and in shared memory otherwise.
constexpr uint32_t kDeltaRegisters = 128;

}  // namespace zinc_rt::cuda
