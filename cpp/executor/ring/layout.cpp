#include "executor/ring/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "arch/builder.h"
#include "mem/placement.h"

namespace zinc_rt {
namespace {

constexpr std::uint64_t kAlign = 256;

// The name of a state buffer without the prefix of its class, as arch::Builder::state() takes it.
std::string_view state_name(const ir::Buffer& buffer) {
  return std::string_view(buffer.name).substr(ir::name_prefix(ir::BufferClass::kState).size());
}
bool is_slot_table(const ir::Buffer& buffer) {
  return state_name(buffer) == arch::kSlotTable;
}
bool holds_saved_inputs(const ir::Buffer& buffer) {
  return state_name(buffer).starts_with(arch::kSavedInputs);
}

// Places a buffer at the end of a region, which grows. A buffer that was placed before is not placed again.
void append(Layout& layout, std::uint64_t& size, const std::string& region, const ir::Buffer& buffer,
            const lower::StepLimits& limits) {
  const std::uint64_t bytes = lower::buffer_bytes(buffer, limits);
  const auto [it, fresh] =
      layout.locations.try_emplace(buffer.name, RegionSpan{region, mem::align_up(size, kAlign), bytes, 0});
  if (!fresh) return;
  const std::uint64_t entries = lower::buffer_bytes(buffer, limits) == 0
                                    ? 1
                                    : std::max<std::uint64_t>(1, buffer.dims[0].is_const() ? buffer.dims[0].n : 1);
  it->second.pitch = bytes / entries;
  size = it->second.offset + bytes;
}

// Returns the layer in a buffer's name: 3 for "model.moe.up_weight[3]". Returns nullopt if the name has no layer.
std::optional<std::uint32_t> layer_of(const std::string& buffer_name) {
  const auto bracket = buffer_name.find('[');
  std::uint32_t layer = 0;
  if (bracket == std::string::npos) return std::nullopt;
  const char* digits = buffer_name.data() + bracket + 1;
  if (std::from_chars(digits, buffer_name.data() + buffer_name.size(), layer).ec != std::errc{}) return std::nullopt;
  return layer;
}

// Returns whether kernels read the tensor in the mapped file. Fixed16 weights are never read in the file, because they
// are computed while the model is loaded.
bool is_mapped(const ir::Buffer& buffer, const LayoutOptions& options) {
  return options.weights_mapped && buffer.dtype != DType::kFixed16;
}

// Returns whether a weight is an experts' matrix that stays in host memory. Experts' matrices are the weights
// model.moe.* with three dimensions (the operands W[e,f,d] of ir/op_rules.cpp). The matrices of LINEAR_HEADS have three
// dimensions, too, but each token reads all of them.
bool is_host_expert(const ir::Buffer& buffer, const LayoutOptions& options) {
  if (options.weights_mapped || buffer.rank < 3 || !buffer.name.starts_with("model.moe.")) return false;
  const auto layer = layer_of(buffer.name);
  return layer && *layer >= options.first_host_layer;
}

}  // namespace

bool is_copied_state(const ir::Buffer& buffer) {
  return buffer.buffer_class == ir::BufferClass::kState && !is_paged(buffer) && !is_slot_table(buffer) &&
         !holds_saved_inputs(buffer);
}

std::string weight_class(const std::string& buffer_name) {
  const auto dot = buffer_name.find('.') + 1;
  return buffer_name.substr(dot, buffer_name.find('[') - dot);
}

Layout make_layout(const std::vector<const ir::Graph*>& graphs, const LayoutOptions& options) {
  Layout layout;
  struct Region {
    std::uint64_t bytes = 0;
    bool is_mapped = false, is_host = false;
  };
  std::map<std::string, Region> weights;
  std::set<std::uint32_t> host_layers;
  std::uint64_t constants = 0, recurrent = 0, saved = 0, slot_table = 0, request = 0, logprobs = 0, rows = 0, ring = 0,
                features = 0;
  std::string rows_region;
  for (const ir::Graph* graph : graphs)
    for (const ir::Buffer& buffer : graph->buffers()) {
      switch (buffer.buffer_class) {
        case ir::BufferClass::kWeight: {
          const bool is_host = is_host_expert(buffer, options);
          if (is_host) host_layers.insert(*layer_of(buffer.name));
          const bool in_file = is_mapped(buffer, options);
          const auto name = fmt::format("weights.{}{}{}", weight_class(buffer.name), is_host ? ".host" : "",
                                        options.weights_mapped && !in_file ? ".converted" : "");
          Region& region = weights[name];
          region.is_mapped = in_file, region.is_host = is_host;
          append(layout, region.bytes, name, buffer, options.limits);
          break;
        }
        case ir::BufferClass::kConstant: append(layout, constants, "constants", buffer, options.limits); break;
        case ir::BufferClass::kRequest: append(layout, request, "step_descriptor", buffer, options.limits); break;
        case ir::BufferClass::kOutput:
          if (buffer.name == "host_ring.logprobs") {
            append(layout, logprobs, "logprobs", buffer, options.limits);
            break;
          }
          if (buffer.name == "out.features") {
            append(layout, features, "features", buffer, options.limits);
            break;
          }
          // The buffer is out.logits or out.embeddings, which has a region of its own.
          if (buffer.name.starts_with("out."))
            append(layout, rows, buffer.name.substr(4), buffer, options.limits), rows_region = buffer.name.substr(4);
          else
            append(layout, ring, "output_ring", buffer, options.limits);
          break;
        case ir::BufferClass::kState:
          if (is_slot_table(buffer)) {
            append(layout, slot_table, "slot_table", buffer, options.limits);
          } else if (holds_saved_inputs(buffer)) {
            append(layout, saved, "saved_inputs", buffer, options.limits);
          } else if (!is_paged(buffer)) {
            append(layout, recurrent, "recurrent_state", buffer, options.limits);
          } else if (options.lender != nullptr) {
            layout.locations[buffer.name] = options.lender->locations.at(buffer.name);
          } else if (buffer.name == kWholePages) {
            layout.locations[buffer.name] = {std::string(kPages), 0, 0, 0};
          } else if (!layout.locations.contains(buffer.name)) {
            const std::uint64_t in_page = buffer.dims[1].n * row_bytes(buffer.dtype, buffer.dims[2].n);
            layout.locations[buffer.name] = {std::string(kPages), mem::align_up(layout.page_bytes, 64), 0, 0};
            layout.page_bytes = layout.locations[buffer.name].offset + in_page;
          }
          break;
        case ir::BufferClass::kActivation: break;
      }
    }
  layout.page_bytes = mem::align_up(layout.page_bytes, kAlign);
  for (auto& [name, span] : layout.locations)
    if (span.region == kPages && options.lender == nullptr) {
      span.pitch = layout.page_bytes;
      span.bytes = layout.page_bytes * options.n_pages - span.offset;
    }
  std::uint64_t arena = 0;
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const auto joins = i < options.joins.size() ? std::span(options.joins[i]) : std::span<const lower::JoinedNodes>();
    layout.activations.push_back(lower::map_activations(*graphs[i], options.limits, options.aliasing, joins));
    arena = std::max(arena, layout.activations.back().arena_bytes);
  }
  const auto add = [&](std::string name, Heap heap, std::uint64_t bytes, bool mapped, std::string note) {
    if (bytes > 0) layout.plan.regions.push_back({std::move(name), heap, bytes, mapped, std::move(note)});
  };
  using enum Heap;
  layout.n_host_expert_layers = static_cast<std::uint32_t>(host_layers.size());
  for (const auto& [name, region] : weights) {
    if (region.is_host) layout.host_expert_bytes += region.bytes;
    add(name, region.is_mapped || region.is_host ? kHostVisible : kDeviceLocal, region.bytes, region.is_mapped,
        region.is_host ? fmt::format("experts of {} layers, from {} on: the device reads them over the bus",
                                     host_layers.size(), *host_layers.begin())
                       : std::string("tensors of one class, all layers"));
  }
  add("constants", kDeviceLocal, constants, false, "RoPE tables");
  add(std::string(kPages), kDeviceLocal, layout.page_bytes * options.n_pages, false,
      fmt::format("{} pages of {} bytes, 16 tokens each", options.n_pages, layout.page_bytes));
  add("recurrent_state", kDeviceLocal, recurrent, false,
      "convolution and delta-net state and sums of rows, of all slots and checkpoints");
  add("saved_inputs", kDeviceLocal, saved, false, "inputs of guessed tokens to recurrent layers, of all slots");
  add("slot_table", kDeviceLocal, slot_table, false, "the last token of each slot");
  add("activations", kDeviceLocal, arena, false,
      fmt::format("for {} query tokens and {} output rows, shared where lives do not meet", options.limits.max_tokens,
                  options.limits.max_outputs));
  add("scratch", kDeviceLocal, options.scratch_bytes, false, "between the kernels of an op");
  add(rows_region, kDeviceLocal, rows, false, fmt::format("{} output rows", options.limits.max_outputs));
  add("features", kDeviceLocal, features, false, "of all tokens of a step, which a draft block reads or gives");
  add("output_ring", kBar, ring, false, "tokens to the host");
  layout.operand_stride = mem::align_up(request, kAlign);
  layout.logprob_stride = mem::align_up(logprobs, kAlign);
  const std::uint64_t more_sets = options.n_operand_sets - 1;
  add("logprobs", kBar, logprobs > 0 ? logprobs + more_sets * layout.logprob_stride : 0, false,
      "what log-probabilities are made of, to the host");
  add("step_descriptor", kHostVisible, request + more_sets * layout.operand_stride, false,
      "what changes from step to step");
  return layout;
}

}  // namespace zinc_rt
