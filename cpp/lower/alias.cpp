#include "lower/alias.h"

#include <algorithm>

namespace zinc_rt::lower {

std::uint64_t buffer_bytes(const ir::Buffer& buffer, const StepLimits& limits) {
  std::uint64_t rows = 1, row = 1;
  for (std::size_t i = 0; i < buffer.rank; ++i) {
    const ir::Dim dim = buffer.dims[i];
    const std::uint64_t n = dim.kind == ir::Dim::Kind::kTokens    ? limits.max_tokens
                            : dim.kind == ir::Dim::Kind::kOutputs ? limits.max_outputs
                                                                  : dim.n;
    (i + 1u == buffer.rank ? row : rows) *= n;
  }
  return rows * row_bytes(buffer.dtype, row);
}

std::size_t output_part_begin(const ir::Graph& graph) {
  const auto nodes = graph.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const auto id : nodes[i].outs())
      if (graph.buffer(id).dims[0] == ir::kOutputs) return i;
  return nodes.size();
}

ActivationMap map_activations(const ir::Graph& graph, const StepLimits& limits, bool aliasing,
                              std::span<const JoinedNodes> joins) {
  const auto nodes = graph.nodes();
  // Lifetimes are counted in phases. A phase consists of the nodes between two barriers, because these nodes may run at
  // the same time.
  std::vector<std::uint32_t> phase(nodes.size() + 1, 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) phase[i + 1] = phase[i] + (nodes[i].op == ir::Op::BARRIER);
  const std::uint32_t end = phase[nodes.size()];
  const std::size_t output_begin = output_part_begin(graph);
  struct Life {
    std::uint32_t first = UINT32_MAX, last = 0;
    bool in_body = false, in_output = false;
  };
  std::vector<Life> lives(graph.buffers().size());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const auto list : {nodes[i].ins(), nodes[i].outs()})
      for (const auto id : list) {
        if (id == ir::kNoBuffer) continue;
        Life& life = lives[static_cast<std::size_t>(id)];
        life.first = std::min(life.first, phase[i]);
        life.last = std::max(life.last, phase[i]);
        (i < output_begin ? life.in_body : life.in_output) = true;
      }
  for (const JoinedNodes& join : joins)
    for (const Kept& kept : join.kept) {
      std::uint32_t& last = lives[static_cast<std::size_t>(kept.buffer)].last;
      last = std::max(last, phase[kept.until]);
    }
  std::vector<mem::Interval> intervals;
  std::vector<std::size_t> owners;
  for (std::size_t b = 0; b < lives.size(); ++b) {
    if (graph.buffers()[b].buffer_class != ir::BufferClass::kActivation || lives[b].first == UINT32_MAX) continue;
    Life life = lives[b];
    if (life.in_body && life.in_output) life.last = end;
    if (!aliasing) life = {0, end};
    intervals.push_back({life.first, life.last, buffer_bytes(graph.buffers()[b], limits)});
    owners.push_back(b);
  }
  const auto placement = mem::place(intervals, kArenaAlignment);
  ActivationMap map;
  map.offsets.assign(lives.size(), 0);
  for (std::size_t i = 0; i < owners.size(); ++i) map.offsets[owners[i]] = placement.offsets[i];
  map.arena_bytes = placement.total_bytes;
  return map;
}

}  // namespace zinc_rt::lower
