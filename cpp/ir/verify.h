// Rejects a malformed graph before it is lowered. These are the rules. Each has a negative test in
// tests_cpp/ir/verify_test.cpp:
//   1 names are unique and begin with their class's prefix; shapes have 1..4 extents, none 0, only the first may be a
//     symbol, rows are whole blocks, and all fit 2^48 bytes
//   2 a weight names a tensor of the model and has its type and shape, or is a range of its rows
//   3 every node fits its op's rule: its operands are declared; types, shapes and attributes match
//   4 a node's stage belongs to the graph's stage; its layer is -1 or a number below 65536
//   5 an output that is also an input is allowed by the rule and flagged inplace; the flag without one is an error
//   6 weights, constants and request buffers are never written
//   7 an activation is written before it is read; a fresh output has one writer
//   8 if two nodes touch the same buffer and one of them writes it, a BARRIER lies between them
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "ir/graph.h"

namespace zinc_rt::ir {

struct TensorSpec {
  DType dtype;
  std::vector<std::uint64_t> dims;  // outermost extent first
};
// Returns what the model file says about a tensor of this name, or nullopt if it has none.
using TensorLookup = std::function<std::optional<TensorSpec>(std::string_view)>;

// Checks all rules and returns the first violation. Without a lookup rule 2 is skipped, because a graph that is read
// from disk may come without a model.
Status verify(const Graph& graph, const TensorLookup& tensors = nullptr);

}  // namespace zinc_rt::ir
