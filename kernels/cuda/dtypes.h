// The numbers of DType (cpp/base/dtype.h) that kernels know. The planner holds them against it while compiling
// (cpp/ring/cuda/plan/kernels.cpp). Shared by host and device (C++17).
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

// Of weights. Images are compiled for one, which the build gives by name (ZRT_WEIGHTS).
enum Format {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kQ4_0 = 3,
  kQ4_1 = 4,
  kQ5_0 = 5,
  kQ5_1 = 6,
  kQ8_0 = 7,
  kQ2_K = 8,
  kQ3_K = 9,
  kQ4_K = 10,
  kQ5_K = 11,
  kQ6_K = 12,
  kIQ4_NL = 13,
  kIQ4_XS = 14,
  kMXFP4 = 15,
  kFixed16 = 24
};
// Of caches.
enum CacheType { kCacheF32 = kF32, kCacheF16 = kF16, kCacheQ8 = kQ8_0, kCacheR8 = 21, kCacheR4 = 22, kCacheI16 = 23 };
// Of quantized rows (kernels/common/act_q8.h).
enum ActType : uint32_t { kQ8A32 = 19, kQ8A256 = 20, kQ16A256 = 25 };

}  // namespace zinc_rt::cuda
