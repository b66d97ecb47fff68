#include "lower/rewrite.h"

namespace zinc_rt::lower {

std::vector<ir::Node> compute_nodes(const ir::Graph& graph) {
  std::vector<ir::Node> nodes;
  for (const auto& node : graph.nodes())
    if (node.op != ir::Op::BARRIER) nodes.push_back(node);
  return nodes;
}

ir::Graph rebuild(const ir::Graph& source, const std::vector<ir::Buffer>& added, const std::vector<ir::Node>& nodes) {
  const std::size_t n_source = source.buffers().size();
  const auto original = [&](ir::BufferId id) -> const ir::Buffer& {
    const auto i = static_cast<std::size_t>(id);
    return i < n_source ? source.buffer(id) : added[i - n_source];
  };
  ir::Graph graph(source.name(), source.stage());
  std::vector<ir::BufferId> renamed(n_source + added.size(), ir::kNoBuffer);
  const auto rename = [&](ir::BufferId& id) {
    if (id == ir::kNoBuffer) return;
    auto& target = renamed[static_cast<std::size_t>(id)];
    if (target == ir::kNoBuffer) target = graph.add_buffer(original(id));
    id = target;
  };
  for (ir::Node node : nodes) {
    for (std::size_t i = 0; i < node.n_inputs; ++i) rename(node.inputs[i]);
    for (std::size_t i = 0; i < node.n_outputs; ++i) rename(node.outputs[i]);
    graph.add_node(node);
    ir::Node barrier;
    barrier.stage = node.stage;
    barrier.layer = node.layer;
    graph.add_node(barrier);
  }
  return graph;
}

}  // namespace zinc_rt::lower
