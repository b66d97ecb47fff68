#include "vulkan/model_memory.h"

#include <algorithm>

#include "base/error.h"
#include "base/kv_type.h"
#include "kernels/vulkan/push.h"
#include "mem/page_pool.h"
#include "mem/placement.h"
#include "model/fixed16.h"

namespace zinc_rt::vulkan {
namespace {

constexpr std::uint64_t kAlign = 256;
// A region of weights may be this large, if the device allows as much.
constexpr std::uint64_t kLargestRegion = std::uint64_t{1} << 30;
// The results of attention's chunks may take this much memory, unless a single token needs more.
constexpr std::uint64_t kMostPartBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kReadPast = 16;  // kernels may read so many bytes beyond a tensor, without using them
constexpr std::uint64_t kStagingBytes = std::uint64_t{16} << 20;

// Appends items to a region of the memory plan, one after another.
class RegionBuilder {
 public:
  RegionBuilder(MemoryPlan& plan, std::string name, Heap heap, std::string note)
      : plan_(plan), index_(plan.regions.size()) {
    plan.regions.push_back({std::move(name), heap, 0, false, std::move(note)});
  }
  Location add(std::uint64_t bytes) {
    MemoryRegion& region = plan_.regions[index_];
    const Location location{index_, mem::align_up(region.bytes, kAlign)};
    region.bytes = location.offset + bytes;
    return location;
  }
  std::uint64_t bytes() const { return plan_.regions[index_].bytes; }

 private:
  MemoryPlan& plan_;
  std::size_t index_;
};

Result<CacheShape> cache_shape(const LayerShape& layer, DType kv) {
  const KvCell& cell = *find_kv_cell(kv);
  for (const auto dim : {layer.head_dim, layer.v_head_dim})
    if (!cell.serves(dim))
      return fail(StatusCode::kInvalidArgument, "[vulkan] a KV cache of type {} wants heads {}, {} given",
                  to_string(kv), cell.head_dims, dim);
  const auto part_bytes = [&](std::uint64_t dim) {
    return kPageTokens * row_bytes(kv, kv_row(cell, layer.n_kv_heads, dim));
  };
  CacheShape shape{layer.n_kv_heads * layer.head_dim, layer.n_kv_heads * layer.v_head_dim, 0, 0};
  const auto v_offset = mem::align_up(part_bytes(layer.head_dim), 16);
  shape.v_offset = static_cast<std::uint32_t>(v_offset);
  shape.page_bytes = static_cast<std::uint32_t>(mem::align_up(v_offset + part_bytes(layer.v_head_dim), 64));
  return shape;
}

void place_weights(const MemoryRequest& request, std::uint64_t largest, ModelMemory& memory) {
  std::uint32_t n_regions = 0;
  std::optional<RegionBuilder> region;
  for (const Tensor* tensor : request.tensors.all) {
    const std::uint64_t bytes = tensor->computed_bytes() + kReadPast;
    if (!region || region->bytes() + bytes + kAlign > largest)
      region.emplace(memory.plan, fmt::format("weights.{}", n_regions++), Heap::kDeviceLocal, "tensors");
    memory.weights[tensor] = region->add(bytes);
  }
}

// The widths of the widest rows over all layers, which activations must have room for.
struct Widths {
  std::uint64_t q = 0, k = 0, v = 0, attn = 0, ffn = 0;
  bool has_experts = false;
};
Widths widths_of(const MemoryRequest& request) {
  Widths w;
  const std::uint64_t heads = request.config.n_heads;
  const auto grow = [](std::uint64_t& to, std::uint64_t width) { to = std::max(to, width); };
  for (const LayerShape& layer : request.shape.layers) {
    if (layer.mixer == Mixer::kAttention) {
      grow(w.q, heads * layer.head_dim);
      grow(w.k, std::uint64_t{layer.n_kv_heads} * layer.head_dim);
      grow(w.v, std::uint64_t{layer.n_kv_heads} * layer.v_head_dim);
      grow(w.attn, heads * layer.v_head_dim);
    } else {
      grow(w.attn, std::uint64_t{request.shape.delta.n_v_heads} * request.shape.delta.v_dim);
    }
    grow(w.ffn, layer.ffn_dim);
    w.has_experts |= layer.feed_forward != FeedForward::kDense;
  }
  if (w.has_experts) grow(w.ffn, request.shape.experts.shared_ffn_dim);
  grow(w.ffn, request.shape.layer_embedding_dim);
  return w;
}

void place_activations(const MemoryRequest& request, ModelMemory& memory) {
  const ModelConfig& c = request.config;
  const ModelShape& shape = request.shape;
  const Widths w = widths_of(request);
  const std::uint64_t n = request.sizes.max_tokens, gate = shape.has_query_gate ? w.q : 0,
                      channels = shape.delta.channels(), v_heads = shape.delta.n_v_heads,
                      choices = w.has_experts ? shape.experts.n_used : 0,
                      layer_embeddings = std::uint64_t{shape.layer_embedding_dim} * c.n_layers;
  RegionBuilder region(memory.plan, "activations", Heap::kDeviceLocal, fmt::format("for {} query tokens", n));
  const auto floats = [&](std::uint64_t width) { return region.add(n * width * sizeof(float)); };
  ActivationPlaces& a = memory.activations;
  a.hidden = floats(c.model_dim);
  a.x = floats(c.model_dim);
  a.y = floats(c.model_dim);
  a.q = floats(w.q);
  a.k = floats(w.k);
  a.v = floats(w.v);
  a.attn = floats(w.attn);
  const std::uint64_t of_chunks = (request.sizes.max_context + push::kAttendWidth - 1) / push::kAttendWidth *
                                  (w.attn + 2 * std::uint64_t{c.n_heads}) * sizeof(float);
  memory.n_split_tokens = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kMostPartBytes / of_chunks, 1, std::min<std::uint64_t>(n, kManyTokens - 1)));
  a.attn_parts = region.add(memory.n_split_tokens * of_chunks);
  a.query_gate = floats(2 * gate);
  a.attn_gate = floats(gate);
  a.gate = floats(w.ffn);
  a.up = floats(w.ffn);
  a.channels = floats(channels);
  a.conv = floats(channels);
  a.z = floats(v_heads * shape.delta.v_dim);
  a.beta_alpha = floats(2 * v_heads);
  a.beta = floats(v_heads);
  a.alpha = floats(v_heads);
  a.router = floats(choices > 0 ? shape.experts.n : 0);
  a.expert_ids = floats(choices);
  a.expert_weights = floats(choices);
  a.expert_gate = floats(choices * shape.experts.ffn_dim);
  a.expert_up = floats(choices * shape.experts.ffn_dim);
  a.expert_y = floats(choices * c.model_dim);
  a.expert_sum = floats(choices > 0 ? c.model_dim : 0);
  a.shared_router = floats(choices > 0 ? 1 : 0);
  a.layer_embeddings = floats(layer_embeddings);
  a.layer_rows = floats(layer_embeddings);
  const std::uint64_t widest = std::max({std::uint64_t{c.model_dim}, w.attn, w.ffn});
  for (std::size_t i = 0; i < kQuantizedForms.size(); ++i) {
    const DType form = kQuantizedForms[i];
    const auto bytes = [&](std::uint64_t width) {
      return activation_row_bytes(form, mem::align_up(width, traits(form).block_elems));
    };
    a.quantized[i] = region.add(mem::align_up(n, push::kMatrixTokens) *
                                std::max(bytes(widest), choices * bytes(shape.experts.ffn_dim)));
  }
}

// Plans the recurrent states. Each layer has its own region, because all layers together may exceed the device's
// largest allocation.
void place_states(const MemoryRequest& request, ModelMemory& memory) {
  const DeltaShape& d = request.shape.delta;
  const std::uint64_t n = request.sizes.state_entries;
  for (std::size_t i = 0; i < request.shape.layers.size(); ++i) {
    auto& state = memory.states.emplace_back();
    if (request.shape.layers[i].mixer != Mixer::kDeltaNet) continue;
    RegionBuilder region(memory.plan, fmt::format("recurrent_state.{}", i), Heap::kDeviceLocal,
                         "convolution and delta-net state of all slots and checkpoints");
    const auto part = [&](std::uint64_t floats) {
      return StatePart{region.add(n * floats * sizeof(float)), floats * sizeof(float)};
    };
    state.emplace();
    state->conv = part(std::uint64_t{d.conv_width - 1} * d.channels());
    state->delta = part(std::uint64_t{d.n_v_heads} * d.k_dim * d.v_dim);
  }
}

void place_step(const MemoryRequest& request, ModelMemory& memory) {
  const Sizes& s = request.sizes;
  RegionBuilder region(memory.plan, "step_descriptor", Heap::kHostVisible, "what changes from step to step");
  const auto words = [&](std::uint64_t n) { return region.add(n * sizeof(std::uint32_t)); };
  StepLocations& step = memory.step;
  step.counts = words(3 * kMaxCounts);
  step.n_tokens = words(1);
  step.n_outputs = words(1);
  step.token_ids = words(s.max_tokens);
  step.positions = words(s.max_tokens);
  step.slots = words(s.max_tokens);
  step.rope_positions = words(s.max_tokens);
  step.output_rows = words(s.max_outputs);
  step.pages = words(std::uint64_t{s.max_slots} * s.max_context / kPageTokens);
  step.runs = words(2 * std::uint64_t{s.max_slots});
}

// Returns how many KV pages fit beside everything else. An eighth of the device's memory is left to other programs.
Result<std::uint32_t> choose_pages(const Device& device, const MemoryRequest& request, const ModelMemory& memory) {
  const std::uint64_t one_context = request.sizes.max_context / kPageTokens;
  std::uint64_t largest = 0;
  for (const auto& cache : memory.caches)
    largest = std::max<std::uint64_t>(largest, cache ? cache->shape.page_bytes : 0);
  const std::uint64_t device_bytes = device.info().memory_bytes, rest = memory.plan.allocated_bytes(),
                      room = device_bytes / 8 * 7 > rest ? device_bytes / 8 * 7 - rest : 0,
                      fit = std::min(room / memory.page_bytes, device.info().max_allocation_bytes / largest);
  const std::uint64_t wanted =
      request.kv_pages > 0
          ? request.kv_pages
          : std::min<std::uint64_t>(fit, default_pages(request.sizes, memory.page_bytes, device_bytes));
  if (wanted > fit || (request.kv_pages == 0 && wanted < one_context))
    return fail(StatusCode::kExhausted,
                "[vulkan] {}: {} pages of {} bytes beside {} bytes, {} pages fit in its {} bytes; a context takes {}",
                device.info().name, request.kv_pages > 0 ? request.kv_pages : one_context, memory.page_bytes, rest, fit,
                device_bytes, one_context);
  return static_cast<std::uint32_t>(wanted);
}

Status place_caches(const Device& device, const MemoryRequest& request, ModelMemory& memory) {
  const auto& layers = request.shape.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& cache = memory.caches.emplace_back();
    if (layers[i].mixer != Mixer::kAttention || layers[i].cache_layer != i) continue;
    cache.emplace();
    ZRT_TRY(cache->shape, cache_shape(layers[i], request.kv_dtype));
    memory.page_bytes += cache->shape.page_bytes;
  }
  if (memory.page_bytes == 0)
    return fail(StatusCode::kUnavailable, "[vulkan] {}: no layer has attention", request.config.architecture);
  ZRT_TRY(memory.n_pages, choose_pages(device, request, memory));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!memory.caches[i]) continue;
    const std::uint64_t bytes = memory.caches[i]->shape.page_bytes;
    memory.caches[i]->location =
        RegionBuilder(memory.plan, fmt::format("kv_pages.{}", i), Heap::kDeviceLocal,
                      fmt::format("{} pages of {} bytes, {} tokens each", memory.n_pages, bytes, kPageTokens))
            .add(memory.n_pages * bytes);
  }
  return {};
}

}  // namespace

std::uint64_t activation_row_bytes(DType form, std::uint64_t width) {
  const std::uint64_t digits_of_sums = form == DType::kQ8A256 ? width / 8 : 0;
  return mem::align_up(row_bytes(form, width) + digits_of_sums, 16);
}

std::uint64_t ModelMemory::state_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& state : states)
    if (state) bytes += state->conv.entry_bytes + state->delta.entry_bytes;
  return bytes;
}

Result<ModelMemory> allocate_model(Device& device, const MemoryRequest& request) {
  ModelMemory memory;
  const std::uint64_t largest = std::min(device.info().max_allocation_bytes, kLargestRegion);
  place_weights(request, largest, memory);
  RegionBuilder tables(memory.plan, "constants", Heap::kDeviceLocal, "RoPE tables");
  for (const auto& variants : request.shape.rope_tables)
    memory.rope_tables.push_back(
        tables.add(2 * variants.size() * request.sizes.max_context * variants[0].frequencies.size() * sizeof(float)));
  place_activations(request, memory);
  const std::uint32_t n_outputs = request.sizes.max_outputs;
  const std::uint64_t logits_bytes = std::uint64_t{n_outputs} * request.config.vocab_size * sizeof(float);
  memory.logits = RegionBuilder(memory.plan, "logits", Heap::kDeviceLocal, fmt::format("{} output rows", n_outputs))
                      .add(logits_bytes);
  RegionBuilder results(memory.plan, "results", Heap::kHostVisible,
                        fmt::format("{} output rows, which the host reads", n_outputs));
  memory.host_logits = results.add(logits_bytes);
  memory.best_tokens = results.add(n_outputs * sizeof(std::int32_t));
  place_step(request, memory);
  if (device.needs_staging())
    RegionBuilder(memory.plan, "staging", Heap::kHostVisible, "between the host and the device").add(kStagingBytes);
  place_states(request, memory);
  ZRT_CHECK_OK(place_caches(device, request, memory));
  for (const MemoryRegion& region : memory.plan.regions) {
    ZRT_TRY(const Buffer buffer, device.allocate(region.bytes, region.heap));
    memory.buffers.push_back(buffer);
    if (region.name == "staging") device.use_staging(buffer);
  }
  return memory;
}

namespace {

// Copies a tensor that is computed in another type than the file's to the device. A few rows are converted at a time.
Status write_converted(Device& device, const Tensor& tensor, const Weights& weights, const Buffer& to,
                       std::uint64_t offset) {
  const std::uint64_t row = row_bytes(tensor.dtype, tensor.dims[0]), n_rows = tensor.n_rows(),
                      n_at_once = std::clamp<std::uint64_t>(kStagingBytes / row, 1, n_rows);
  std::vector<std::byte> rows(n_at_once * row);
  for (std::uint64_t first = 0; first < n_rows; first += n_at_once) {
    const std::uint64_t n = std::min(n_at_once, n_rows - first);
    weights.copy_rows(tensor, first, n, rows.data(), conversion_threads());
    ZRT_CHECK_OK(device.write(to, offset + first * row, std::span(rows).first(n * row)));
  }
  return {};
}

}  // namespace

Status load_model(Device& device, const MemoryRequest& request, const Weights& weights, const ModelMemory& memory,
                  const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress) {
  const auto write = [&](Location location, std::span<const std::byte> bytes) {
    return device.write(memory.buffers[location.region], location.offset, bytes);
  };
  for (std::size_t i = 0; i < memory.rope_tables.size(); ++i) {
    const auto rows = rope_rows(request.shape.rope_tables[i], request.sizes.max_context);
    ZRT_CHECK_OK(write(memory.rope_tables[i], std::as_bytes(std::span(rows))));
  }
  std::uint64_t done = 0, total = 0;
  for (const Tensor* tensor : request.tensors.all) total += tensor->data.size();
  for (const Tensor* tensor : request.tensors.all) {
    const Location location = memory.weights.at(tensor);
    if (tensor->dtype == tensor->stored)
      ZRT_CHECK_OK(write(location, tensor->data));
    else
      ZRT_CHECK_OK(write_converted(device, *tensor, weights, memory.buffers[location.region], location.offset));
    weights.release(*tensor);
    done += tensor->data.size();
    if (on_progress) on_progress(done, total);
  }
  return weights.is_whole();
}

}  // namespace zinc_rt::vulkan
