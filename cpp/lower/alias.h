// Where each activation lies in one arena: two that are never alive at once may share memory.
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

// The largest step that the engine will run: what the open extents may become.
struct StepLimits {
  std::uint32_t max_tokens = 0;
  std::uint32_t max_outputs = 0;
};

std::uint64_t buffer_bytes(const ir::Buffer& buffer, const StepLimits& limits);

struct ActivationMap {
  std::vector<std::uint64_t> offsets;  // one a buffer of the graph; meaningful for activations that some node uses
  std::uint64_t arena_bytes = 0;
};
// aliasing = false gives each its own place, for diffing. A value that the output part of the graph reads
// (ring/packet.h, body_end) and the body wrote stays to the end, since the output part may run several times. What
// `joins` keep stays until the node that they say.
ActivationMap map_activations(const ir::Graph& graph, const StepLimits& limits, bool aliasing = true,
                              std::span<const JoinedNodes> joins = {});

// Index of the first node of the output part: the first that makes rows of kOutputs; the number of nodes when there is
// none.
std::size_t output_part_begin(const ir::Graph& graph);

}  // namespace zinc_rt::lower
