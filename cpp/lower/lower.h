// A verified graph to a PacketBatch: picks each node's kernel, bakes its shapes into it, binds its buffers.
// Thread rule: one thread; calls the ring's load_kernel.
#pragma once

#include <functional>
#include <map>

#include "ir/graph.h"
#include "ring/ring.h"

namespace zinc_rt::lower {

// Where a buffer of the graph lies. pitch: bytes from one entry of its outermost dimension to the next.
struct Location {
  ring::Binding binding;
  std::uint64_t pitch = 0;
};
using Locate = std::function<Result<Location>(ir::BufferId)>;

// Kernels that were specialized before, by their bytes: stages of one model share them.
using KernelCache = std::map<std::vector<std::byte>, ring::Kernel>;

// With values, edges and what matches the ring's patterns. Errors: kUnavailable when the tier has no kernel for an (op,
// type), naming both.
Result<ring::PacketBatch> lower(const ir::Graph& graph, ring::Ring& ring, const Locate& locate, KernelCache& cache);

}  // namespace zinc_rt::lower
