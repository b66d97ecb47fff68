// Defines functions that the passes (passes.h) share. A pass works on nodes without barriers and produces a graph with
// a barrier after each node.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace zinc_rt::lower {

// Returns the nodes of a graph without its barriers.
std::vector<ir::Node> compute_nodes(const ir::Graph& graph);

// Builds a graph from these nodes, with a barrier after each. The operands of the nodes are buffer ids: first the
// buffers of `source` are numbered, then the buffers in `added`. Buffers that no node uses are left out.
ir::Graph rebuild(const ir::Graph& source, const std::vector<ir::Buffer>& added, const std::vector<ir::Node>& nodes);

}  // namespace zinc_rt::lower
