// The shared memory that kernels are shaped for: a multiprocessor's of compute capability 9.0, in bytes.
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

constexpr uint32_t kKilobyte = 1u << 10;
constexpr uint32_t kSharedOfMultiprocessor = 228 * kKilobyte;
constexpr uint32_t kSharedOfEach = kKilobyte;  // that a workgroup takes besides what it asks for
// What each of so many workgroups of a multiprocessor may ask for.
constexpr uint32_t shared_of(uint32_t workgroups) {
  return kSharedOfMultiprocessor / workgroups - kSharedOfEach;
}

}  // namespace zinc_rt::cuda
