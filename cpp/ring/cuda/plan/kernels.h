// The kernels of this tier as the lowering sees them: the table of ops with their symbols, and how a table entry
// becomes a LoadedKernel once its symbols have values. Nothing here needs a device.
// Thread rule: plain values.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ring/cuda/plan/plan.h"

namespace zinc_rt::ring {

using LoadedKernel = gpu::Kernel<CudaOp>;

kernel::KernelTable make_cuda_table();
// Returns the patterns of cuda_joins(), in the same order.
std::span<const std::string_view> cuda_join_patterns();
// Reads a kernel from its .zrt file. Errors: as gpu::read_kernel.
Result<LoadedKernel> read_kernel(std::span<const std::byte> zrt);

// Which operands of an op are its page table, positions and slots, and which symbol is the width of the page table. All
// are -1 if the op reads no page table.
struct Pages {
  int page_table = -1, pos = -1, slot = -1, width_symbol = -1;
};
Pages pages_of(ir::Op op);

// Returns the call of a packet, for steps of up to `bucket`. kernels: the loaded kernels, indexed by Kernel::id - 1.
OpCall call_of(const PacketBatch& batch, const Packet& packet, std::span<const LoadedKernel> kernels, StepDims bucket);
// Returns the bytes of scratch memory that steps of up to `most` need: the largest need of any bucket and part.
std::uint64_t most_scratch_bytes(const PacketBatch& batch, std::span<const LoadedKernel> kernels, StepDims most,
                                 const DeviceProfile& device);

}  // namespace zinc_rt::ring
