// One row per op: its operands with types and shapes, its attributes, and which outputs update an input in place.
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

// A factor of a dimension pattern: a number, an attribute, or a variable that the first operand naming it binds.
struct DimPattern {
  std::vector<std::string> factors;  // the dimension is their product; a single name may also bind a symbol
};

struct OperandRule {
  std::string name;
  std::uint32_t dtypes = 0;  // bit set over DType
  bool optional = false;
  std::int8_t updates =
      -1;  // outputs: index of the input that it must be, -1 = a fresh buffer, -2 = fresh or the first input
  std::vector<DimPattern> dims;
};

struct OpRule {
  Op op;
  std::string_view text;  // the row's source text, for docs and messages
  std::vector<OperandRule> inputs, outputs;
  std::vector<AttrRule> attrs;
  std::int8_t key_input = -1;  // the operand whose dtype selects the kernel (a weight or cache); -1: the kernel for f32
};

const OpRule& rule(Op op);

// The values of a rule's variables for one node; they are dims of the node's operands.
struct Bindings {
  struct Entry {
    std::string_view name;
    Dim dim;
  };
  std::vector<Entry> entries;
  const Dim* find(std::string_view name) const;
};

// Checks a node's operands and attributes against the rule and returns the values of the rule's variables. Errors:
// kInvalidArgument, naming the op, the operand and both values.
Result<Bindings> match(const Graph& graph, const Node& node);

// Attribute access by name. REQUIRES: the op's rule has an attribute of this name.
std::uint32_t attr_u32(const Node& node, std::string_view name);
float attr_f32(const Node& node, std::string_view name);
void set_attr(Node& node, std::string_view name, std::uint32_t value);
void set_attr(Node& node, std::string_view name, float value);

}  // namespace zinc_rt::ir
