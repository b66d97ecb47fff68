// The kernel sets of T-CPU: the reference, and those for instruction sets that this processor has.
// Thread rule: pure functions.
#pragma once

#include <string>

#include "kernels/cpu/kernel.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// By name (ref, avx2); empty or "auto": the fastest that runs here. Errors: kUnavailable with the names that there are.
Result<const cpu::KernelSet*> find_kernel_set(const std::string& name);

}  // namespace zinc_rt::ring
