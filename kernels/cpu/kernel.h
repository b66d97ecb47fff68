// Says how T-CPU calls a kernel: once per workgroup, from any thread, in any order. Each kernels/cpu/<op>.cpp defines
// one `const CpuKernel kCpuKernel_<op>`, and CMake lists them from the file names. The comment at the head of such a
// file defines the op: what it computes, its shapes, and the order of its sums. "Rule N" in these comments refers to
// docs/arithmetic.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"

namespace zinc_rt::cpu {

struct LinearArgs;
struct AttendTile;
struct RowKernels;

// A KernelSet replaces the work inside kernels by faster functions for one instruction set, with the same bits
// (kernels/cpu_simd). If a member is null, the reference runs.
struct KernelSet {
  const char* name;
  bool reads_panels = false;  // whether this set reads quantized weights as row panels (quant/panels.h)
  // Multiplies rows [begin, end) of W by the rows of x. Returns false, and does nothing, if the set does not support
  // these arguments.
  bool (*linear_rows)(const LinearArgs& args, std::uint32_t begin, std::uint32_t end) = nullptr;
  void (*attend)(const AttendTile& tile) = nullptr;
  const RowKernels* rows = nullptr;
};

struct CpuArgs {
  // Addresses of the op's inputs, then of its outputs, in the order of the op's rule; null for an absent operand.
  void* const* buffers;
  const std::uint32_t* symbols;  // values of CpuKernel::symbols, in the same order
  const void* push;              // the op's constants, of type push::<Op>
  std::uint32_t n_tokens, n_outputs;
  std::uint32_t wg[3];  // index of this workgroup in the grid
  std::byte* lds;       // memory of this thread, CpuKernel::lds_bytes bytes, aligned to 64
  std::byte* shared;    // memory that all workgroups share, CpuKernel::shared_bytes bytes, aligned to 64
  const KernelSet* set = nullptr;
  std::uint32_t packed = 0;  // bit i is set if buffer i's quantized matrices are stored as row panels (quant/panels.h)
  std::uint32_t n_threads = 1;  // number of threads that run the workgroups

  bool is_packed(std::size_t i) const { return (packed >> i & 1) != 0; }
  template <class T>
  T* buffer(std::size_t i) const {
    return static_cast<T*>(buffers[i]);
  }
  template <class T>
  const T& constants() const {
    return *static_cast<const T*>(push);
  }
  // Returns the value of a dimension symbol. Two special values stand for the numbers of tokens and of output rows,
  // because these change from step to step. They are replaced by the step's numbers.
  std::uint32_t dim(std::size_t symbol) const {
    const std::uint32_t value = symbols[symbol];
    if (value == 0xFFFFFFF0u) return n_tokens;
    if (value == 0xFFFFFFF1u) return n_outputs;
    return value;
  }
};

// Says for which types of the op's key operand (a weight or the KV cache) the op has kernels.
enum class KeyTypes : std::uint8_t { kNone, kWeights, kKv, kF16AndBF16, kQ4K };

struct CpuGrid {
  // Name of a dimension or attribute of the op's rule. The axis has one workgroup per `tile` elements of it. Null: one
  // workgroup.
  const char* variable = nullptr;
  std::uint32_t tile = 1;
};

struct CpuKernel {
  const char* op;
  void (*run)(const CpuArgs& args);
  std::vector<const char*> symbols;
  CpuGrid grid[2];
  KeyTypes keys = KeyTypes::kNone;
  std::uint64_t (*lds_bytes)(const std::uint32_t* symbols) = nullptr;
  // Optional work that runs before the first workgroup and writes its results to args.shared, which has shared_bytes
  // bytes. `prepare` is called n_prepare(args) times, with the call's index in wg[0]. Like `run`, it may be called on
  // any thread. n_prepare and shared_bytes may read the op's inputs.
  void (*prepare)(const CpuArgs& args) = nullptr;
  std::uint32_t (*n_prepare)(const CpuArgs& args) = nullptr;
  std::uint64_t (*shared_bytes)(const CpuArgs& args) = nullptr;
};

std::span<const CpuKernel* const> cpu_kernels();

}  // namespace zinc_rt::cpu
