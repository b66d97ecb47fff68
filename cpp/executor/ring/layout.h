// Makes the memory map of a model's graphs: the region of each buffer and its offset there. Integers only.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/memory_plan.h"
#include "ir/graph.h"
#include "lower/alias.h"

namespace zinc_rt {

// Where a buffer is: a region of the plan and an offset in it. `pitch`: the bytes from one entry of its outermost
// dimension to the next.
struct RegionSpan {
  std::string region;
  std::uint64_t offset = 0, bytes = 0, pitch = 0;
};

struct Layout {
  MemoryPlan plan;
  // Where each buffer is, by its name. Activations are not here, because each stage has its own map.
  std::unordered_map<std::string, RegionSpan> locations;
  std::vector<lower::ActivationMap> activations;  // one per graph; all share one arena
  std::uint64_t page_bytes = 0;                   // bytes of K and V of all attention layers for 16 tokens
  // The experts that are in host memory although the device has its own memory.
  std::uint32_t n_host_expert_layers = 0;
  std::uint64_t host_expert_bytes = 0;
};

// A buffer [pages, words of a page] that covers whole KV pages. The other paged buffers cover a part of each page.
inline constexpr std::string_view kWholePages = "state.kv_pages";

// Whether a state buffer is in KV pages. The other state buffers have one entry per slot.
inline bool is_paged(const ir::Buffer& buffer) {
  return buffer.name.starts_with("state.kv_");
}

// "model.attn.q_weight[3]" -> "attn.q_weight": tensors of one class share a region.
std::string weight_class(const std::string& buffer_name);

// The value of first_host_layer if all experts are on the device.
inline constexpr std::uint32_t kNoHostLayer = UINT32_MAX;

struct LayoutOptions {
  lower::StepLimits limits;
  std::uint32_t n_pages = 0;
  bool aliasing = true;
  bool weights_mapped = true;
  // From this layer on, the experts' matrices go to regions of kHostVisible. Mapped weights stay where they are.
  std::uint32_t first_host_layer = kNoHostLayer;
  std::uint64_t scratch_bytes = 0;  // from Ring::scratch_bytes
  // The matches of the tier's patterns in each graph; empty: none.
  std::span<const std::vector<lower::JoinedNodes>> joins = {};
};
Layout make_layout(const std::vector<const ir::Graph*>& graphs, const LayoutOptions& options);

}  // namespace zinc_rt
