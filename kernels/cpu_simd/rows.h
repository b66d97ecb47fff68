// The row functions of kernels/cpu/ops.h by instruction set, with the reference's bits.
// Thread rule: pure functions.
#pragma once

#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu_simd {

extern const cpu::RowKernels kRowsAvx2;

}  // namespace zinc_rt::cpu_simd
