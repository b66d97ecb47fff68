// The reference kernels as .zrt files: the `code` of a cpu kernel is one 4-byte slot a symbol, its name the opcode.
#pragma once

#include "kernel/kernel_table.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::ring {

kernel::KernelTable make_cpu_table();

// The kernel that a file names. Errors: kNotFound; kCorrupt when its symbols, buffers or push constants are not those
// of the kernel of this build.
Result<const cpu::CpuKernel*> find_cpu_kernel(const kernel::ZrtFile& file);

}  // namespace zinc_rt::ring
