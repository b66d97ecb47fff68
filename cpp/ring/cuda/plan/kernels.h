// The tier's kernels as lowering knows them: the table with their symbols, and what becomes of an entry when its
// symbols are patched. No device is needed.
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
// Errors: as gpu::read_kernel.
Result<LoadedKernel> read_kernel(std::span<const std::byte> zrt);

// Operands of an op that reads a page table, by their places, and the place of the symbol that is the table's width.
// -1: it reads none.
struct Pages {
  int page_table = -1, pos = -1, slot = -1, width_symbol = -1;
};
Pages pages_of(ir::Op op);

// A packet of a batch in steps of up to `bucket`. kernels: by Kernel::id - 1; the packet's is among them.
OpCall call_of(const PacketBatch& batch, const Packet& packet, std::span<const LoadedKernel> kernels, StepDims bucket);
// The scratch memory that steps of up to `most` take, in bytes: the most of all buckets and parts.
std::uint64_t most_scratch_bytes(const PacketBatch& batch, std::span<const LoadedKernel> kernels, StepDims most,
                                 const DeviceProfile& device);

}  // namespace zinc_rt::ring
