// Lists the ops that the AMD tiers can run, one row each, and the patterns of packets that they run as one.
// Thread rule: plain values.
#pragma once

#include "ring/gpu/op_table.h"
#include "ring/gpu/plan.h"

namespace zinc_rt::ring {

class AmdPlanner;
struct AmdCall;
using AmdOp = gpu::Op<AmdPlanner, AmdCall>;
// AmdKernel::name is the op's name. If the op has a kernel of its own, this is also the name of the function in the
// images.
using AmdKernel = gpu::Kernel<AmdOp>;
using AmdJoin = gpu::Join<AmdPlanner, AmdCall>;

std::span<const AmdOp> amd_ops();
std::span<const AmdJoin> amd_joins();  // defined in joins.cpp
std::span<const std::string_view> amd_join_patterns();

kernel::KernelTable make_amd_table(kernel::Target target);
// Reads a kernel from its .zrt file. Errors: those of gpu::read_kernel().
Result<AmdKernel> read_amd_kernel(std::span<const std::byte> zrt, kernel::Target target);

}  // namespace zinc_rt::ring
