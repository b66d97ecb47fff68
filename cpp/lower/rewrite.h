// What the passes share: they work on nodes without barriers, and make a graph with a barrier after each node.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace zinc_rt::lower {

// The nodes of a graph without its barriers.
std::vector<ir::Node> compute_nodes(const ir::Graph& graph);

// A graph of these nodes. A node's operands are ids of buffers: those of `source`, and behind them the `added` ones.
// Buffers that no node uses are left out.
ir::Graph rebuild(const ir::Graph& source, const std::vector<ir::Buffer>& added, const std::vector<ir::Node>& nodes);

}  // namespace zinc_rt::lower
