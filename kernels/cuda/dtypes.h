// The values of the enum DType (cpp/base/dtype.h) that kernels use, repeated here because device code includes no
// headers of cpp/. cpp/ring/cuda/plan/kernels.cpp checks at compile time that both agree. Shared by host and device
// (C++17).
#pragma once

#include <stdint.h>

namespace zinc_rt::cuda {

// Format is the type of a weight matrix. Each image (compiled device program) is built for one of them, which the build
// passes as the macro ZRT_WEIGHTS.
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
// CacheType is the type of a KV cache. kCacheR8 and kCacheR4 are the types of rotated codes (k8v4, k4v4), kCacheI16 is
// 16-bit integers.
enum CacheType { kCacheF32 = kF32, kCacheF16 = kF16, kCacheQ8 = kQ8_0, kCacheR8 = 21, kCacheR4 = 22, kCacheI16 = 23 };
// ActType is the type of a quantized row of activations (kernels/common/act_q8.h): 8-bit codes with a scale per 32 or
// per 256 values, or codes of 16 bits (two digits) with a scale per 256.
enum ActType : uint32_t { kQ8A32 = 19, kQ8A256 = 20, kQ16A256 = 25 };

}  // namespace zinc_rt::cuda
