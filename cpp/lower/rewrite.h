// What the passes share: nodes without barriers in, a graph with a barrier after each out.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace zinc_rt::lower {

// The nodes of a graph, barriers left out.
std::vector<ir::Node> compute_nodes(const ir::Graph& graph);

// A graph of these nodes over the buffers of `source` (whose ids they use) and `added` ones, which follow in order.
// Buffers that no node uses are left out.
ir::Graph rebuild(const ir::Graph& source, const std::vector<ir::Buffer>& added, const std::vector<ir::Node>& nodes);

}  // namespace zinc_rt::lower
