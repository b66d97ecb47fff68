// The numbers of the data types that these kernels distinguish. They are those of DType (cpp/base/dtype.h), which
// cpp/ring/amd/ops.cpp asserts. Shared by host and device (POD).
#pragma once

#include <stdint.h>

namespace zinc_rt::rdna {

enum Type : uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 7, kQ8A32 = 19, kQ8A256 = 20, kQ16A256 = 25 };

}  // namespace zinc_rt::rdna
