#include "kernel/kernel_table.h"

namespace zinc_rt::kernel {

bool KernelTable::has(ir::Op op) const {
  const auto first = entries_.lower_bound({op, DType{}});
  return first != entries_.end() && first->first.first == op;
}

const KernelEntry* KernelTable::find(ir::Op op, DType key) const {
  const auto it = entries_.find({op, key});
  return it == entries_.end() ? nullptr : &it->second;
}

DType kernel_key(const ir::Graph& graph, const ir::Node& node) {
  const auto key_input = ir::rule(node.op).key_input;
  return key_input < 0 ? DType::kF32 : graph.buffer(node.inputs[static_cast<std::size_t>(key_input)]).dtype;
}

}  // namespace zinc_rt::kernel
