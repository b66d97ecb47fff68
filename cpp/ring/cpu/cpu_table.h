// The reference kernels as .zrt files. A cpu kernel's `code` is one 4-byte slot per symbol; its name is the opcode.
#pragma once

#include "kernel/kernel_table.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::ring {

kernel::KernelTable make_cpu_table();

// Finds the kernel that a file names. Errors: kNotFound; kCorrupt if its symbols, buffers or push constants differ from
// those of this build's kernel.
Result<const cpu::CpuKernel*> find_cpu_kernel(const kernel::ZrtFile& file);

}  // namespace zinc_rt::ring
