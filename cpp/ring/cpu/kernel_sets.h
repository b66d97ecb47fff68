// The kernel sets of T-CPU: the reference, and those for instruction sets that this processor has.
// Thread rule: pure functions.
#pragma once

#include <string>

#include "kernels/cpu/kernel.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// By name (ref, avx2, avx_vnni, avx512_vnni); empty or "auto": the fastest that runs here. Errors: kUnavailable with
// the names that there are.
Result<const cpu::KernelSet*> find_kernel_set(const std::string& name);

// The sets of this build by name: the one that "auto" takes, others that run here, those that do not.
std::string describe_kernel_sets();

}  // namespace zinc_rt::ring
