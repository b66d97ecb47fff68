// Gives each activation an offset in one memory region. Two activations may share memory if no node needs both.
// Thread rule: pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "lower/join.h"
#include "mem/placement.h"

namespace zinc_rt::lower {

inline constexpr std::uint64_t kArenaAlignment = 64;

// StepLimits says how large a step may be at most. Symbolic extents are sized for it.
struct StepLimits {
  std::uint32_t max_tokens = 0;
  std::uint32_t max_outputs = 0;
};

std::uint64_t buffer_bytes(const ir::Buffer& buffer, const StepLimits& limits);

struct ActivationMap {
  std::vector<std::uint64_t> offsets;  // one offset per buffer of the graph; set only for activations that a node uses
  std::uint64_t arena_bytes = 0;
};
// Assigns memory to the activations of a graph. Without `aliasing` each activation has memory of its own, so that tests
// can compare values after a step. Two kinds of values live longer than their last reader. A value that the body writes
// and the output part reads (ring/packet.h, body_end) lives to the end, because the output part may run several times.
// A value that a pattern in `joins` protects by `keep` (lower/join.h) lives until the node in front of `keep`.
ActivationMap map_activations(const ir::Graph& graph, const StepLimits& limits, bool aliasing = true,
                              std::span<const JoinedNodes> joins = {});

// Returns the index of the first node of the output part, which is the first node that writes rows of kOutputs. If no
// node writes such rows, returns the number of nodes.
std::size_t output_part_begin(const ir::Graph& graph);

}  // namespace zinc_rt::lower
