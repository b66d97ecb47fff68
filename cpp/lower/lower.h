// Makes a PacketBatch of a verified graph: picks the kernel of each node, bakes the shapes into it, binds its buffers.
// Thread rule: one thread; calls the ring's load_kernel.
#pragma once

#include <functional>
#include <map>

#include "ir/graph.h"
#include "ring/ring.h"

namespace zinc_rt::lower {

// Where a buffer of the graph lies. `pitch`: the bytes from one entry of its outermost dimension to the next.
struct Location {
  ring::Binding binding;
  std::uint64_t pitch = 0;
};
using Locate = std::function<Result<Location>(ir::BufferId)>;

// The kernels that were specialized so far, by their bytes: the stages of one model share them.
using KernelCache = std::map<std::vector<std::byte>, ring::Kernel>;

// The batch has its values, its edges, and the packets that match patterns of the ring. Errors: kUnavailable when the
// tier has no kernel for an (op, type), naming both.
Result<ring::PacketBatch> lower(const ir::Graph& graph, ring::Ring& ring, const Locate& locate, KernelCache& cache);

}  // namespace zinc_rt::lower
