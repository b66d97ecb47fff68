// The ops of the tiers of AMD GPUs: a row each, with its kernels. What has no row is refused when a graph is lowered.
// Thread rule: plain values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernel/kernel_table.h"
#include "kernel/slots.h"

namespace zinc_rt::ring {

// Of which types of its key operand an op has kernels.
enum class AmdKeys : std::uint8_t { kNone, kWeights, kKv };

struct AmdAxis {
  const char* variable = nullptr;  // dimension or attribute of the op's rule; null: 1 workgroup
  std::uint32_t tile = 1;
};

struct AmdOp {
  ir::Op op;
  std::vector<const char*> symbols;
  AmdAxis grid[2];
  std::uint32_t threads;  // of a workgroup
  AmdKeys keys = AmdKeys::kNone;
  // Scratch memory of `rows` rows, from the symbols. Null: none.
  std::uint64_t (*scratch_bytes)(std::span<const std::uint32_t> symbols, std::uint64_t rows) = nullptr;
  struct {
    std::size_t symbol = 0;
    std::uint32_t most = 0;  // that the kernel has room for; 0: there is no limit
  } limit = {};
};
std::span<const AmdOp> amd_ops();

kernel::KernelTable make_amd_table(kernel::Target target);

// An op whose symbols have their numbers.
struct AmdKernel : kernel::SlotKernel {
  const AmdOp* op;
  std::string function;  // of the images
};
// Errors: kCorrupt for a file that cannot be read or has other symbols than the op, kUnavailable for another target,
// kInvalidArgument for a symbol without its number, kNotFound for an op that has no row.
Result<AmdKernel> read_amd_kernel(std::span<const std::byte> zrt, kernel::Target target);

}  // namespace zinc_rt::ring
