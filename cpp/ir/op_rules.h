// Defines the rules of ops, one row per op: its operands with types and shapes, its attributes, and which outputs
// update an input in place. verify() checks graphs with them, and lower() finds the values of kernel parameters.
// Thread rule: the table is built on first use and immutable.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace zinc_rt::ir {

enum class AttrType : std::uint8_t { kU32, kF32 };

struct AttrRule {
  std::string name;
  AttrType type;
};

// Describes one dimension of an operand as a product of factors. A factor is a number, an attribute, or a variable. A
// variable's value is the extent of the first operand whose pattern names it.
struct DimPattern {
  // The extent is their product; if there is a single variable, its value may also be a symbol (Dim).
  std::vector<std::string> factors;
};

struct OperandRule {
  std::string name;
  std::uint64_t dtypes = 0;  // set of allowed types: bit i is DType i
  bool optional = false;
  // Unused for inputs. For an output that must be the same buffer as an input, the index of this input. -1: the output
  // is a fresh buffer. -2: a fresh buffer or the first input.
  std::int8_t updates = -1;
  std::vector<DimPattern> dims;
};

struct OpRule {
  Op op;
  std::string_view text;  // the source text of the row, for docs and messages
  std::vector<OperandRule> inputs, outputs;
  std::vector<AttrRule> attrs;
  // Index of the operand whose type selects the kernel (a weight or cache). -1: the kernel for f32 is used.
  std::int8_t key_input = -1;
};

const OpRule& rule(Op op);

// Holds the values of a rule's variables for one node. match() takes them from the extents of the node's operands.
struct Bindings {
  struct Entry {
    std::string_view name;
    Dim dim;
  };
  std::vector<Entry> entries;
  const Dim* find(std::string_view name) const;
};

// Checks a node's operands and attributes against the op's rule. Returns the values of the rule's variables. Errors:
// kInvalidArgument, naming the op, the operand and both values.
Result<Bindings> match(const Graph& graph, const Node& node);

// Read or set an attribute of a node by its name. REQUIRES: the op's rule has an attribute of this name.
std::uint32_t attr_u32(const Node& node, std::string_view name);
float attr_f32(const Node& node, std::string_view name);
void set_attr(Node& node, std::string_view name, std::uint32_t value);
void set_attr(Node& node, std::string_view name, float value);

}  // namespace zinc_rt::ir
