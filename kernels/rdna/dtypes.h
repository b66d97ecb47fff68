// The numbers of the types that kernels ask for: those of cpp/base/dtype.h, which cpp/ring/amd/ops.cpp holds against
// these. POD, shared by host and device.
#pragma once

#include <stdint.h>

namespace zinc_rt::rdna {

enum Type : uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 7, kQ8A32 = 19, kQ8A256 = 20, kQ16A256 = 25 };

}  // namespace zinc_rt::rdna
