// Turns a verified graph into a PacketBatch, which a ring executes. For each node it picks a kernel, bakes the shapes
// into it and binds the buffers.
// Thread rule: one thread; calls the ring's load_kernel.
#pragma once

#include <functional>
#include <map>

#include "ir/graph.h"
#include "ring/ring.h"

namespace zinc_rt::lower {

// Location says where the executor put a buffer of the graph. `pitch` is the number of bytes from one entry of the
// buffer's outermost dimension to the next.
struct Location {
  ring::Binding binding;
  std::uint64_t pitch = 0;
};
using Locate = std::function<Result<Location>(ir::BufferId)>;

// Holds the specialized kernels that are loaded, keyed by their bytes. The stages of a model share the cache, so equal
// kernels are loaded once.
using KernelCache = std::map<std::vector<std::byte>, ring::Kernel>;

// Lowers a graph. The batch also contains its values, its edges, and the packets that match the ring's patterns of
// joins. Errors: kUnavailable if the tier has no kernel for an (op, type), naming both.
Result<ring::PacketBatch> lower(const ir::Graph& graph, ring::Ring& ring, const Locate& locate, KernelCache& cache);

}  // namespace zinc_rt::lower
