// The amount of shared memory for which kernels choose their tile and ring sizes: that of a multiprocessor of compute
// capability 9.0, in bytes.
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

constexpr uint32_t kKilobyte = 1u << 10;
constexpr uint32_t kSharedOfMultiprocessor = 228 * kKilobyte;
// The driver reserves this much for each workgroup, in addition to what the launch requests.
constexpr uint32_t kSharedOfEach = kKilobyte;
// Returns the bytes that each workgroup may request if `workgroups` of them are to run on one multiprocessor at the
// same time.
constexpr uint32_t shared_of(uint32_t workgroups) {
  return kSharedOfMultiprocessor / workgroups - kSharedOfEach;
}

}  // namespace zinc_rt::cuda
