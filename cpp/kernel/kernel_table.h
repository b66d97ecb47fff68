// Maps an (op, type) to the kernel that runs it on a target. A tier fills the table once; lowering looks kernels up.
// Thread rule: immutable after it is filled.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "ir/graph.h"
#include "ir/op_rules.h"
#include "kernel/zrt_file.h"

namespace zinc_rt::kernel {

// GridAxis says how many workgroups a launch has along one axis: ceil(variable / tile). `variable` is the name of a
// dimension or attribute of the op's rule. If the name is empty, the axis has one workgroup.
struct GridAxis {
  std::string variable;
  std::uint32_t tile = 1;
};

// KernelEntry is a kernel before specialization. The symbols of `file` name the values that lowering writes into the
// kernel:
//   dim:NAME    a dimension of the op's rule. A symbolic extent becomes kSymbolicTokens or kSymbolicOutputs; a dimension
//               that only absent operands have becomes kAbsent
//   attr:NAME   an integer attribute           dtype:OPERAND  the operand's type as a number, kAbsent when it is absent
//   pitch:OPERAND  bytes between two entries of the operand's outermost dimension
struct KernelEntry {
  ZrtFile file;
  GridAxis grid[3];
  // Computes the bytes of workgroup-local memory from the values of the symbols, in their order in the file. Null:
  // file.lds_bytes is used.
  std::uint64_t (*lds_bytes)(const std::uint32_t* values) = nullptr;
};

inline constexpr std::uint32_t kSymbolicTokens = 0xFFFFFFF0;
inline constexpr std::uint32_t kSymbolicOutputs = 0xFFFFFFF1;
inline constexpr std::uint32_t kAbsent = 0xFFFFFFFF;

class KernelTable {
 public:
  explicit KernelTable(Target target) : target_(target) {}
  Target target() const { return target_; }

  // `key` is the type of the op's key operand (OpRule::key_input). It is kF32 for ops without a key operand.
  void add(ir::Op op, DType key, KernelEntry entry) { entries_[{op, key}] = std::move(entry); }
  const KernelEntry* find(ir::Op op, DType key) const;
  bool has(ir::Op op) const;  // returns whether the op has a kernel of any key type
  std::size_t size() const { return entries_.size(); }

 private:
  Target target_;
  std::map<std::pair<ir::Op, DType>, KernelEntry> entries_;
};

// Returns the key type of a node: the type of its op's key operand, or kF32.
DType kernel_key(const ir::Graph& graph, const ir::Node& node);

}  // namespace zinc_rt::kernel
