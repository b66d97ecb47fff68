// The tier's kernels as lowering knows them: the table with their symbols, and what becomes of an entry when its
// symbols are patched. No device is needed.
// Thread rule: plain values.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel_table.h"
#include "kernel/slots.h"
#include "ring/cuda/plan/plan.h"

namespace zinc_rt::ring {

// An op whose symbols have their numbers.
struct LoadedKernel : kernel::SlotKernel {  // symbols: by the places of op_symbols.h
  const CudaOp* op;
};

kernel::KernelTable make_cuda_table();
// The patterns of cuda_joins, in their order.
std::span<const std::string_view> cuda_join_patterns();
// Errors: kCorrupt for a file that cannot be read or has other symbols than the op, kUnavailable for another target,
// kInvalidArgument for a symbol without its number, kNotFound for an op that is not in the table.
Result<LoadedKernel> read_kernel(std::span<const std::byte> zrt);

// A packet of a batch in steps of up to `bucket`. kernels: by Kernel::id - 1; the packet's is among them.
OpCall call_of(const PacketBatch& batch, const Packet& packet, std::span<const LoadedKernel> kernels, StepDims bucket);
// The scratch memory that steps of up to `most` take, in bytes: the most of all buckets and parts.
std::uint64_t most_scratch_bytes(const PacketBatch& batch, std::span<const LoadedKernel> kernels, StepDims most,
                                 const DeviceProfile& device);

}  // namespace zinc_rt::ring
