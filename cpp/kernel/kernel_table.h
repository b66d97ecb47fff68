// Which kernel runs an (op, type) on a target. A tier fills the table with its kernels once; lowering looks them up.
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

// One axis of a launch: ceil(variable / tile) workgroups. `variable` is a dimension or attribute of the op's rule; if
// it is empty there is one workgroup.
struct GridAxis {
  std::string variable;
  std::uint32_t tile = 1;
};

// A kernel before specialization. The symbols of `file` say what lowering bakes in:
//   dim:NAME    a dimension of the op's rule. A symbolic extent becomes kSymbolicTokens or kSymbolicOutputs; a dimension
//               that only absent operands have becomes kAbsent
//   attr:NAME   an integer attribute           dtype:OPERAND  the operand's type as a number, kAbsent when it is absent
//   pitch:OPERAND  bytes between two entries of the operand's outermost dimension
struct KernelEntry {
  ZrtFile file;
  GridAxis grid[3];
  // Bytes of workgroup-local memory, from the values of the symbols in the order of the file; null = file.lds_bytes.
  std::uint64_t (*lds_bytes)(const std::uint32_t* values) = nullptr;
};

inline constexpr std::uint32_t kSymbolicTokens = 0xFFFFFFF0;
inline constexpr std::uint32_t kSymbolicOutputs = 0xFFFFFFF1;
inline constexpr std::uint32_t kAbsent = 0xFFFFFFFF;

class KernelTable {
 public:
  explicit KernelTable(Target target) : target_(target) {}
  Target target() const { return target_; }

  // `key` is the type of the op's key operand (OpRule::key_input), kF32 for ops without one.
  void add(ir::Op op, DType key, KernelEntry entry) { entries_[{op, key}] = std::move(entry); }
  const KernelEntry* find(ir::Op op, DType key) const;
  bool has(ir::Op op) const;  // of any type
  std::size_t size() const { return entries_.size(); }

 private:
  Target target_;
  std::map<std::pair<ir::Op, DType>, KernelEntry> entries_;
};

// The key type of a node in its graph.
DType kernel_key(const ir::Graph& graph, const ir::Node& node);

}  // namespace zinc_rt::kernel
