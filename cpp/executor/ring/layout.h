// Computes the memory map of a model's graphs: in which region each buffer is, and at which offset. Nothing is
// allocated here.
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

// RegionSpan is the place of a buffer: a region of the plan and an offset in it. `pitch` is the number of bytes from
// one entry of the buffer's outermost dimension to the next.
struct RegionSpan {
  std::string region;
  std::uint64_t offset = 0, bytes = 0, pitch = 0;
};

struct Layout {
  MemoryPlan plan;
  // The key is a buffer's name. Activations are not in this map, because each stage has its own map of them
  // (`activations`).
  std::unordered_map<std::string, RegionSpan> locations;
  std::vector<lower::ActivationMap> activations;  // one per graph; all graphs share one arena
  // Bytes from the first set of the step's operands to the second (LayoutOptions::n_operand_sets), and the same for the
  // logprobs that steps return.
  std::uint64_t operand_stride = 0, logprob_stride = 0;
  std::uint64_t page_bytes = 0;  // bytes of K and V of all attention layers for one page (16 tokens)
  // n_host_expert_layers counts the layers whose experts are in host memory although the device has its own memory.
  // host_expert_bytes is the size of these experts.
  std::uint32_t n_host_expert_layers = 0;
  std::uint64_t host_expert_bytes = 0;
};

// The name of a buffer [pages, words of a page] that covers whole KV pages. Other paged buffers cover only a part of
// each page.
inline constexpr std::string_view kWholePages = "state.kv_pages";
inline constexpr std::string_view kPages = "kv_pages";  // the region of the KV pages

// Returns whether a state buffer is part of the KV pages. Other state buffers have entries per slot.
inline bool is_paged(const ir::Buffer& buffer) {
  return buffer.name.starts_with("state.kv_");
}
// Returns whether a state buffer is copied between slots and checkpoints. It then has an entry for each of both. The
// slot table and the saved inputs of guessed tokens have entries for slots alone.
bool is_copied_state(const ir::Buffer& buffer);

// Returns the class of a weight buffer, such as "attn.q_weight" for "model.attn.q_weight[3]". Tensors of one class
// share a region.
std::string weight_class(const std::string& buffer_name);

// The value of first_host_layer if all experts are on the device.
inline constexpr std::uint32_t kNoHostLayer = UINT32_MAX;

struct LayoutOptions {
  lower::StepLimits limits;
  std::uint32_t n_pages = 0;
  bool aliasing = true;
  bool weights_mapped = true;
  // The matrices of experts from this layer on go to regions of kHostVisible. Mapped weights stay in the mapped file.
  std::uint32_t first_host_layer = kNoHostLayer;
  // How many times the regions step_descriptor and logprobs hold what belongs to a step: 2 if a step is filled while
  // another runs.
  std::uint32_t n_operand_sets = 1;
  std::uint64_t scratch_bytes = 0;  // bytes of scratch memory that the tier's kernels need (Ring::scratch_bytes)
  // joins[i] lists the groups of nodes in graph i that the tier runs as one packet, because they match its join
  // patterns (lower/join.h). Empty: no groups.
  std::span<const std::vector<lower::JoinedNodes>> joins = {};
  // The layout whose KV pages the graphs read; the plan then has none. Null: the plan has KV pages of its own. REQUIRES:
  // it has all paged buffers of the graphs.
  const Layout* lender = nullptr;
};
Layout make_layout(const std::vector<const ir::Graph*>& graphs, const LayoutOptions& options);

}  // namespace zinc_rt
