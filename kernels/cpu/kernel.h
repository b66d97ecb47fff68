// How T-CPU calls a kernel: once a workgroup, from any thread, in any order. Each kernels/cpu/<op>.cpp defines one
// `const CpuKernel kCpuKernel_<op>`; CMake writes the list of them from the file names.
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

// A set of faster bodies for the work inside kernels, to the same bits (kernels/cpu_simd). Null members: the reference.
struct KernelSet {
  const char* name;
  bool reads_panels = false;  // whether quantized weights should lie in row panels (quant/panels.h)
  // Rows [begin, end) of W times the rows of x; false, and nothing done, for what it does not serve.
  bool (*linear_rows)(const LinearArgs& args, std::uint32_t begin, std::uint32_t end) = nullptr;
  void (*attend)(const AttendTile& tile) = nullptr;
  const RowKernels* rows = nullptr;
};

struct CpuArgs {
  void* const* buffers;          // the op's inputs then outputs, in the order of its rule; null: absent
  const std::uint32_t* symbols;  // values of CpuKernel::symbols
  const void* push;              // push::<Op>
  std::uint32_t n_tokens, n_outputs;
  std::uint32_t wg[3];  // this workgroup
  std::byte* lds;       // CpuKernel::lds_bytes of memory of this thread, aligned to 64
  std::byte* shared;    // CpuKernel::shared_bytes, the same for all workgroups, aligned to 64
  const KernelSet* set = nullptr;
  std::uint32_t packed = 0;     // bit i: buffer i is memory whose quantized matrices lie in row panels
  std::uint32_t n_threads = 1;  // that workgroups run on

  bool is_packed(std::size_t i) const { return (packed >> i & 1) != 0; }
  template <class T>
  T* buffer(std::size_t i) const {
    return static_cast<T*>(buffers[i]);
  }
  template <class T>
  const T& constants() const {
    return *static_cast<const T*>(push);
  }
  // A dimension symbol's value; the two open ones are resolved by the step.
  std::uint32_t dim(std::size_t symbol) const {
    const std::uint32_t value = symbols[symbol];
    if (value == 0xFFFFFFF0u) return n_tokens;
    if (value == 0xFFFFFFF1u) return n_outputs;
    return value;
  }
};

enum class KeyTypes : std::uint8_t {
  kNone,
  kWeights,
  kKv,
  kF16AndBF16,
  kQ4K
};  // the types of the op's key operand it serves

struct CpuGrid {
  const char* variable = nullptr;  // dimension or attribute of the op's rule; null: 1
  std::uint32_t tile = 1;
};

struct CpuKernel {
  const char* op;
  void (*run)(const CpuArgs& args);
  std::vector<const char*> symbols;
  CpuGrid grid[2];
  KeyTypes keys = KeyTypes::kNone;
  std::uint64_t (*lds_bytes)(const std::uint32_t* symbols) = nullptr;
  // Optional: work that comes before the first workgroup, into args.shared: prepare is called as run is, n_prepare
  // times (wg[0]). n_prepare and shared_bytes may read the op's inputs.
  void (*prepare)(const CpuArgs& args) = nullptr;
  std::uint32_t (*n_prepare)(const CpuArgs& args) = nullptr;
  std::uint64_t (*shared_bytes)(const CpuArgs& args) = nullptr;
};

std::span<const CpuKernel* const> cpu_kernels();

}  // namespace zinc_rt::cpu
