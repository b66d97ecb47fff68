// The kernel sets of T-CPU: the reference, and those for instruction sets that this processor has.
// Thread rule: pure functions.
#pragma once

#include <string>

#include "kernels/cpu/kernel.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// By name (ref; avx2, avx_vnni, avx512_vnni, amx_int8; neon, neon_dotprod, neon_i8mm); empty or "auto": the fastest
// that runs here. Errors: kUnavailable with the names that there are.
Result<const cpu::KernelSet*> find_kernel_set(const std::string& name);

// The set with kernels of arithmetic `fast` (docs/arithmetic.md) in the place of some of its own; null: there are none
// that run here.
const cpu::KernelSet* fast_form_of(const cpu::KernelSet& set);

// A loop of nothing but the multiply-adds of bytes that the set's LINEAR is made of, on one thread: so many rounds, and
// how many products they were. Null: the reference, which has no such instructions, and the sets of 64-bit ARM.
using Int8Products = std::uint64_t (*)(std::uint64_t rounds);
Int8Products int8_products_of(const cpu::KernelSet& set);

// The sets of this build by name: the one that "auto" takes and its form for arithmetic `fast`, others that run here,
// those that do not.
std::string describe_kernel_sets();

}  // namespace zinc_rt::ring
