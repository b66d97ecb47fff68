#include <algorithm>
#include <iterator>
#include <list>
#include <map>

#include "base/error.h"
#include "ir/op_rules.h"
#include "ir/operands.h"
#include "lower/passes.h"
#include "lower/rewrite.h"

namespace zinc_rt::lower {
namespace {

// Index of the operand x, which holds the rows that a product reads. x is the first input of every op that takes
// quantized rows.
constexpr std::size_t kX = operand::Linear::x;
static_assert(kX == operand::LmHead::x && kX == operand::MoeLinear::x && kX == operand::MoeGateUp::x &&
              kX == operand::MoeDownAcc::x && kX == operand::MoeGateTopk::x && kX == operand::LinearHeads::x);

// Returns the type that the node's operand x must have: the activation type of the node's weights, or f32 if the op
// takes no quantized input.
Result<DType> wanted_type(const ir::Graph& graph, const ir::Node& node) {
  const auto& rule = ir::rule(node.op);
  if (rule.key_input < 0 || (rule.inputs[kX].dtypes >> static_cast<unsigned>(DType::kQ8A32) & 1u) == 0)
    return DType::kF32;
  const auto key = static_cast<std::size_t>(rule.key_input);
  const DType wanted = act_dtype(graph.buffer(node.inputs[key]).dtype);
  for (std::size_t i = key + 1; i < rule.inputs.size(); ++i) {
    if (node.inputs[i] == ir::kNoBuffer || rule.inputs[i].dtypes != rule.inputs[key].dtypes) continue;
    const auto& other = graph.buffer(node.inputs[i]);
    if (act_dtype(other.dtype) != wanted)
      return fail(StatusCode::kUnavailable, "[lower] {}: {} wants activations of type {}, {} of type {}",
                  to_string(node.op), graph.buffer(node.inputs[key]).name, to_string(wanted), other.name,
                  to_string(act_dtype(other.dtype)));
  }
  return wanted;
}

}  // namespace

Result<ir::Graph> quantize_activations(const ir::Graph& graph) {
  std::list<ir::Node> nodes;
  std::vector<ir::Buffer> added;
  std::map<ir::BufferId, std::list<ir::Node>::iterator> writers;  // the last node that wrote each buffer
  // made[buffer, type] is the buffer that already holds the buffer's rows quantized to the type. An element is removed
  // when its source buffer is written again.
  std::map<std::pair<ir::BufferId, DType>, ir::BufferId> made;
  std::map<ir::BufferId, int> versions;
  for (ir::Node node : compute_nodes(graph)) {
    const auto& attrs = ir::rule(node.op).attrs;
    if (std::ranges::find(attrs, "quantize", &ir::AttrRule::name) != attrs.end())
      ir::set_attr(node, "quantize", std::uint32_t{1});
    ZRT_TRY(const DType wanted, wanted_type(graph, node));
    if (wanted != DType::kF32 && graph.buffer(node.inputs[kX]).dtype == DType::kF32) {
      const ir::BufferId source = node.inputs[kX];
      auto [it, fresh] =
          made.try_emplace({source, wanted}, static_cast<ir::BufferId>(graph.buffers().size() + added.size()));
      if (fresh) {
        ir::Buffer buffer = graph.buffer(source);
        const int version = versions[source] - 1;  // the first content of a buffer gets no version number in its name
        buffer.name = fmt::format("act.{}/{}{}", buffer.name.substr(buffer.name.find('.') + 1), to_string(wanted),
                                  version > 0 ? fmt::format("/{}", version) : "");
        buffer.buffer_class = ir::BufferClass::kActivation;
        buffer.dtype = wanted;
        added.push_back(std::move(buffer));
        // The QUANTIZE is placed right after the node that writes the rows, so that a tier may run both nodes as one
        // packet.
        const auto writer = writers.find(source);
        const bool is_written = writer != writers.end();
        ir::Node quantize;
        ir::set_operands<operand::Quantize>(quantize, 1, {.x = source, .y = it->second});
        quantize.stage = node.stage;
        quantize.layer = is_written ? writer->second->layer : node.layer;
        nodes.insert(is_written ? std::next(writer->second) : nodes.end(), quantize);
      }
      node.inputs[kX] = it->second;
    }
    nodes.push_back(node);
    for (const auto id : node.outs()) {
      ++versions[id];
      writers[id] = std::prev(nodes.end());
      std::erase_if(made, [&](const auto& entry) { return entry.first.first == id; });
    }
  }
  return rebuild(graph, added, {nodes.begin(), nodes.end()});
}

}  // namespace zinc_rt::lower
