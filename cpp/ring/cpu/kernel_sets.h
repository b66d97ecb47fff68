// Lists T-CPU's kernel sets (the reference set, and one per instruction set), and picks one that this processor can
// run.
// Thread rule: pure functions.
#pragma once

#include <string>

#include "kernels/cpu/kernel.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// Returns a set by its name: ref; avx2, avx_vnni, avx512_vnni, amx_int8; neon, neon_dotprod, neon_i8mm. An empty name
// or "auto" picks the fastest set that runs here. Errors: kUnavailable with the existing names.
Result<const cpu::KernelSet*> find_kernel_set(const std::string& name);

// Returns the set with some kernels replaced by kernels of arithmetic `fast` (docs/arithmetic.md). Returns null if this
// processor can run no such kernel.
const cpu::KernelSet* fast_form_of(const cpu::KernelSet& set);

// For measuring a processor's peak (`zinc-rt bench --roofline`). Returns a single-threaded loop of only the byte
// multiply-adds that the set's LINEAR uses. It takes the number of rounds and returns the number of products. Returns
// null for the reference set, which has no such instructions, and for the sets of 64-bit ARM.
using Int8Products = std::uint64_t (*)(std::uint64_t rounds);
Int8Products int8_products_of(const cpu::KernelSet& set);

// Returns one line for display: the set that "auto" picks and its variant for arithmetic `fast`, the other sets that
// run here, and the sets that do not run here.
std::string describe_kernel_sets();

// Returns one line for display: all sets of this build, including sets that do not run here.
std::string list_kernel_sets();

}  // namespace zinc_rt::ring
