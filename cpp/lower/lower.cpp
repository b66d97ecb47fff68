#include "lower/lower.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ir/op_rules.h"
#include "lower/alias.h"
#include "lower/join.h"

namespace zinc_rt::lower {
namespace {

// Holds a node that is being lowered, with its op's rule, the values of its dimensions and the memory of its operands.
struct Site {
  const ir::Graph& graph;
  const ir::Node& node;
  const ir::OpRule& rule;
  ir::Bindings dims;
  std::vector<Location> locations;  // memory of the inputs, then of the outputs
};

std::uint32_t symbol_value(ir::Dim dim) {
  switch (dim.kind) {
    case ir::Dim::Kind::kTokens: return kernel::kSymbolicTokens;
    case ir::Dim::Kind::kOutputs: return kernel::kSymbolicOutputs;
    case ir::Dim::Kind::kConst: return dim.n;
  }
  return kernel::kAbsent;
}

Result<std::size_t> operand_index(const Site& site, std::string_view name) {
  for (std::size_t i = 0; i < site.rule.inputs.size(); ++i)
    if (site.rule.inputs[i].name == name) return i;
  for (std::size_t i = 0; i < site.rule.outputs.size(); ++i)
    if (site.rule.outputs[i].name == name) return site.rule.inputs.size() + i;
  return fail(StatusCode::kInternal, "[lower] {} has no operand {}", to_string(site.node.op), name);
}

ir::BufferId operand(const Site& site, std::size_t i) {
  return i < site.node.n_inputs ? site.node.inputs[i] : site.node.outputs[i - site.node.n_inputs];
}

// Returns the value of an attribute of the node, or of a dimension in its op's rule, by name. The symbols of kernels
// have these names.
Result<ir::Dim> variable(const Site& site, std::string_view name) {
  if (const ir::Dim* dim = site.dims.find(name)) return *dim;
  for (const auto& attr : site.rule.attrs)
    if (attr.name == name) return ir::Dim(ir::attr_u32(site.node, name));
  return fail(StatusCode::kInternal, "[lower] {} has no variable {}", to_string(site.node.op), name);
}

// Returns whether this dimension occurs only in operands that are absent, so that it has no value.
bool is_unbound(const Site& site, std::string_view name) {
  if (site.dims.find(name) != nullptr) return false;
  return std::ranges::any_of(site.rule.inputs, [&](const ir::OperandRule& operand) {
    return operand.optional && std::ranges::any_of(operand.dims, [&](const ir::DimPattern& dim) {
             return dim.factors.size() == 1 && dim.factors[0] == name;
           });
  });
}

Result<std::uint32_t> symbol_value(const Site& site, std::string_view symbol) {
  const auto colon = symbol.find(':');
  const auto kind = symbol.substr(0, colon), name = symbol.substr(colon + 1);
  if (kind == "dim" || kind == "attr") {
    if (is_unbound(site, name)) return kernel::kAbsent;
    ZRT_TRY(const ir::Dim dim, variable(site, name));
    return symbol_value(dim);
  }
  ZRT_TRY(const std::size_t i, operand_index(site, name));
  const ir::BufferId id = operand(site, i);
  if (kind == "dtype")
    return id == ir::kNoBuffer ? kernel::kAbsent : static_cast<std::uint32_t>(site.graph.buffer(id).dtype);
  if (kind == "pitch") {
    if (site.locations[i].pitch > 0xFFFFFFEFu)
      return fail(StatusCode::kUnavailable, "[lower] {}: a pitch of {} bytes exceeds 32 bits", to_string(site.node.op),
                  site.locations[i].pitch);
    return static_cast<std::uint32_t>(site.locations[i].pitch);
  }
  return fail(StatusCode::kInternal, "[lower] kernel {} has an unknown symbol {}", to_string(site.node.op), symbol);
}

Result<ring::Kernel> specialize(const Site& site, const kernel::KernelEntry& entry, ring::Ring& ring,
                                KernelCache& cache) {
  kernel::ZrtFile file = entry.file;
  std::vector<std::uint32_t> values;
  for (const auto& symbol : entry.file.symbols) {
    ZRT_TRY(const std::uint32_t value, symbol_value(site, symbol.name));
    ZRT_CHECK_OK(file.patch(symbol.name, value));
    values.push_back(value);
  }
  if (entry.lds_bytes != nullptr) {
    const std::uint64_t bytes = entry.lds_bytes(values.data());
    if (bytes > UINT32_MAX)
      return fail(StatusCode::kUnavailable, "[lower] {} needs {} bytes of local memory", to_string(site.node.op),
                  bytes);
    file.lds_bytes = static_cast<std::uint32_t>(bytes);
  }
  auto bytes = kernel::write_zrt(file);
  if (const auto it = cache.find(bytes); it != cache.end()) return it->second;
  ZRT_TRY(const auto loaded, ring.load_kernel(bytes));
  cache.emplace(std::move(bytes), loaded);
  return loaded;
}

// Fails if the tier has no kernel of the op for one of its weights. The kernel is chosen by the type of one operand,
// but reads all weights of the node.
Status check_kernels(const Site& site, const ring::Ring& ring, DType key) {
  const auto refuse = [&](DType type, const std::string& what) {
    return fail(StatusCode::kUnavailable, "[lower] the tier has no kernel for {} of type {}{}", to_string(site.node.op),
                to_string(type), what);
  };
  const auto& inputs = site.rule.inputs;
  if (site.rule.key_input >= 0)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].dtypes != inputs[static_cast<std::size_t>(site.rule.key_input)].dtypes) continue;
      if (site.node.inputs[i] == ir::kNoBuffer) continue;
      const ir::Buffer& buffer = site.graph.buffer(site.node.inputs[i]);
      if (traits(buffer.dtype).is_weight && ring.kernels().find(site.node.op, buffer.dtype) == nullptr)
        return refuse(buffer.dtype, buffer.tensor.empty() ? "" : " (tensor " + buffer.tensor + ")");
    }
  return ring.kernels().find(site.node.op, key) != nullptr ? Status{} : refuse(key, "");
}

Result<ring::Packet> lower_node(const Site& site, ring::Ring& ring, KernelCache& cache, ring::PacketBatch& batch) {
  const DType key = kernel::kernel_key(site.graph, site.node);
  ZRT_CHECK_OK(check_kernels(site, ring, key));
  const auto* entry = ring.kernels().find(site.node.op, key);
  ring::Packet packet;
  packet.op = site.node.op;
  packet.layer = site.node.layer;
  ZRT_TRY(packet.kernel, specialize(site, *entry, ring, cache));
  for (int axis = 0; axis < 3; ++axis) {
    if (entry->grid[axis].variable.empty()) continue;
    ZRT_TRY(packet.grid[axis].extent, variable(site, entry->grid[axis].variable));
    packet.grid[axis].tile = entry->grid[axis].tile;
  }
  packet.first_binding = static_cast<std::uint32_t>(batch.bindings.size());
  packet.n_bindings = static_cast<std::uint32_t>(site.locations.size());
  packet.n_inputs = site.node.n_inputs;
  for (const auto& location : site.locations) batch.bindings.push_back(location.binding);
  packet.first_push = static_cast<std::uint32_t>(batch.push.size());
  packet.push_bytes = static_cast<std::uint32_t>(4 * site.rule.attrs.size());
  batch.push.resize(batch.push.size() + packet.push_bytes);
  if (packet.push_bytes > 0)
    std::memcpy(batch.push.data() + packet.first_push, site.node.attrs.data(), packet.push_bytes);
  return packet;
}

}  // namespace

Result<ring::PacketBatch> lower(const ir::Graph& graph, ring::Ring& ring, const Locate& locate, KernelCache& cache) {
  ring::PacketBatch batch;
  batch.name = graph.name();
  const std::size_t output_begin = output_part_begin(graph);
  const auto nodes = graph.nodes();
  std::vector<std::uint32_t> packet_of(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ir::Node& node = nodes[i];
    packet_of[i] = static_cast<std::uint32_t>(batch.packets.size());
    if (i == output_begin) batch.body_end = packet_of[i];
    if (node.op == ir::Op::BARRIER) continue;  // a barrier becomes no packet, because edges order the batch's packets
    ZRT_TRY(auto dims, ir::match(graph, node));
    Site site{graph, node, ir::rule(node.op), std::move(dims), {}};
    for (const auto list : {node.ins(), node.outs()})
      for (const auto id : list) {
        if (id == ir::kNoBuffer) {
          site.locations.push_back({});
        } else {
          ZRT_TRY(auto location, locate(id));
          site.locations.push_back(location);
        }
      }
    ZRT_TRY(auto packet, lower_node(site, ring, cache, batch));
    batch.packets.push_back(packet);
    if (node.layer >= 0) {
      if (batch.layer_end.size() <= static_cast<std::size_t>(node.layer))
        batch.layer_end.resize(static_cast<std::size_t>(node.layer) + 1);
      batch.layer_end[static_cast<std::size_t>(node.layer)] = static_cast<std::uint32_t>(batch.packets.size());
    }
  }
  if (output_begin == nodes.size()) batch.body_end = static_cast<std::uint32_t>(batch.packets.size());
  ring::find_dependencies(batch);
  ZRT_TRY(const auto joins, find_joins(graph, ring.joins()));
  for (const JoinedNodes& join : joins)
    batch.joined.push_back({join.pattern, packet_of[join.nodes.front()], static_cast<std::uint32_t>(join.least),
                            static_cast<std::uint32_t>(join.nodes.size())});
  return batch;
}

}  // namespace zinc_rt::lower
