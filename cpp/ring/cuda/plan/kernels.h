// The tier's kernels for lowering: the table with their symbols, and how an entry becomes a kernel when its symbols are
// patched. No device is needed.
// Thread rule: plain values.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ring/cuda/plan/plan.h"

namespace zinc_rt::ring {

using LoadedKernel = gpu::Kernel<CudaOp>;

kernel::KernelTable make_cuda_table();
// The patterns of cuda_joins, in their order.
std::span<const std::string_view> cuda_join_patterns();
// Reads a kernel from its .zrt file. Errors: as gpu::read_kernel.
Result<LoadedKernel> read_kernel(std::span<const std::byte> zrt);

// The positions of the operands of an op that reads a page table, and of the symbol that holds the table's width. -1:
// the op reads none.
struct Pages {
  int page_table = -1, pos = -1, slot = -1, width_symbol = -1;
};
Pages pages_of(ir::Op op);

// Returns the call of a packet, for steps of up to `bucket`. kernels: the loaded kernels, indexed by Kernel::id - 1.
OpCall call_of(const PacketBatch& batch, const Packet& packet, std::span<const LoadedKernel> kernels, StepDims bucket);
// The bytes of scratch memory that steps of up to `most` need: the largest need of any bucket and part.
std::uint64_t most_scratch_bytes(const PacketBatch& batch, std::span<const LoadedKernel> kernels, StepDims most,
                                 const DeviceProfile& device);

}  // namespace zinc_rt::ring
