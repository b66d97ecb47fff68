// The ops of the tiers of AMD GPUs: a row each. What has no row is refused when a graph is lowered.
// Thread rule: plain values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel_table.h"
#include "kernel/slots.h"

namespace zinc_rt::ring {

class AmdPlanner;
struct AmdCall;

// Of which types of its key operand an op has kernels.
enum class AmdKeys : std::uint8_t { kNone, kWeights, kKv, kQ4K };

struct AmdAxis {
  const char* variable = nullptr;  // dimension or attribute of the op's rule; null: 1 workgroup
  std::uint32_t tile = 1;
};

struct AmdOp {
  ir::Op op;
  std::vector<const char*> symbols;
  // Workgroups of its own kernel, which has its name; of any plan, the first axis counts the op's rows.
  AmdAxis grid[3];
  std::uint32_t threads = 0;  // of a workgroup
  AmdKeys keys = AmdKeys::kNone;
  // The launches that it is; null: that of its own kernel.
  void (*plan)(AmdPlanner& planner, const AmdCall& call) = nullptr;
  struct Limit {
    std::size_t symbol;
    std::uint32_t most;  // that the kernel has room for
  };
  std::vector<Limit> limits = {};
};
std::span<const AmdOp> amd_ops();

kernel::KernelTable make_amd_table(kernel::Target target);

// An op whose symbols have their numbers.
struct AmdKernel : kernel::SlotKernel {
  const AmdOp* op;
  std::string function;  // of the images, where the op has a kernel of its own
};
// Errors: kCorrupt for a file that cannot be read or has other symbols than the op, kUnavailable for another target,
// kInvalidArgument for a symbol without its number, kNotFound for an op that has no row.
Result<AmdKernel> read_amd_kernel(std::span<const std::byte> zrt, kernel::Target target);

// A pattern of packets that are planned as one (joins.cpp; lower/join.h says how patterns are written).
struct AmdJoin {
  std::string_view pattern;
  // The first n of `calls` match. Returns how many of the n it has planned. 0: it does not take these rows and types,
  // and has planned nothing.
  std::size_t (*plan)(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);
};
std::span<const AmdJoin> amd_joins();

}  // namespace zinc_rt::ring
