// Describes the reference kernels as .zrt files, so that lowering treats T-CPU like any device. A CPU kernel's `code`
// is one 4-byte slot per symbol, and its name is the opcode.
#pragma once

#include "kernel/kernel_table.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::ring {

kernel::KernelTable make_cpu_table();

// Returns the kernel that a file names. Errors: kNotFound; kCorrupt if the file's symbols, buffers or push constants
// differ from those of this build's kernel.
Result<const cpu::CpuKernel*> find_cpu_kernel(const kernel::ZrtFile& file);

}  // namespace zinc_rt::ring
