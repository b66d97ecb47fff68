// Gives access to a node's operands by name, such as operands_of<operand::Linear>(node).w. The type argument also says
// which op the node must have.
// Thread rule: pure functions.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ir/graph.h"
#include "kernels/common/operands.h"

namespace zinc_rt::ir {

// Maps a struct of operand names, such as operand::Linear, to its opcode.
template <class Names>
inline constexpr Op kOpOf = Op::kCount;
#define ZRT_OP_OF(opcode, Name, ...) \
  template <>                        \
  inline constexpr Op kOpOf<operand::Name> = Op::opcode;
ZRT_OPERANDS(ZRT_OP_OF)
#undef ZRT_OP_OF

// Returns the node's operands by name. REQUIRES: the node has this op, with all inputs and outputs of its rule.
template <class Names>
typename Names::template Of<BufferId> operands_of(const Node& node) {
  assert(node.op == kOpOf<Names> && node.n_inputs + node.n_outputs == Names::kCount);
  BufferId ids[Names::kCount];
  std::ranges::copy(node.outs(), std::ranges::copy(node.ins(), ids).out);
  typename Names::template Of<BufferId> operands;
  static_assert(sizeof(operands) == sizeof(ids));
  std::memcpy(&operands, ids, sizeof(ids));
  return operands;
}

// Sets a node's op and operands. n_inputs is the number of inputs in the op's rule.
template <class Names>
void set_operands(Node& node, std::size_t n_inputs, const typename Names::template Of<BufferId>& operands) {
  BufferId ids[Names::kCount];
  static_assert(sizeof(operands) == sizeof(ids));
  std::memcpy(ids, &operands, sizeof(ids));
  node.op = kOpOf<Names>;
  node.n_inputs = static_cast<std::uint8_t>(n_inputs);
  node.n_outputs = static_cast<std::uint8_t>(Names::kCount - n_inputs);
  std::copy_n(ids, n_inputs, node.inputs.begin());
  std::copy(ids + n_inputs, ids + Names::kCount, node.outputs.begin());
}

}  // namespace zinc_rt::ir
