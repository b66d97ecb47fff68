#include "vulkan/model_memory.h"

#include <algorithm>

#include "base/error.h"
#include "base/kv_type.h"
#include "mem/page_pool.h"
#include "mem/placement.h"
#include "model/fixed16.h"

namespace zinc_rt::vulkan {
namespace {

constexpr std::uint64_t kAlign = 256;
constexpr std::uint64_t kLargestRegion = std::uint64_t{1} << 30;  // of weights, where the device allows more
constexpr std::uint64_t kStagingBytes = std::uint64_t{16} << 20;

// Appends things to a region of the plan, one after another.
class RegionBuilder {
 public:
  RegionBuilder(MemoryPlan& plan, std::string name, Heap heap, std::string note)
      : plan_(plan), index_(plan.regions.size()) {
    plan.regions.push_back({std::move(name), heap, 0, false, std::move(note)});
  }
  Place add(std::uint64_t bytes) {
    MemoryRegion& region = plan_.regions[index_];
    const Place place{index_, mem::align_up(region.bytes, kAlign)};
    region.bytes = place.offset + bytes;
    return place;
  }
  std::uint64_t bytes() const { return plan_.regions[index_].bytes; }

 private:
  MemoryPlan& plan_;
  std::size_t index_;
};

Result<CacheShape> cache_shape(const ModelConfig& c, const LayerShape& layer, DType kv) {
  const KvCell& cell = *find_kv_cell(kv);
  for (const auto dim : {c.head_dim, c.v_head_dim})
    if (!cell.serves(dim))
      return fail(StatusCode::kInvalidArgument, "[vulkan] a KV cache of type {} wants heads {}, {} given",
                  to_string(kv), cell.head_dims, dim);
  const auto part_bytes = [&](std::uint64_t dim) {
    return mem::kPageTokens * row_bytes(kv, kv_row(cell, layer.n_kv_heads, dim));
  };
  CacheShape shape{layer.n_kv_heads * c.head_dim, layer.n_kv_heads * c.v_head_dim, 0, 0};
  const auto v_offset = mem::align_up(part_bytes(c.head_dim), 16);
  shape.v_offset = static_cast<std::uint32_t>(v_offset);
  shape.page_bytes = static_cast<std::uint32_t>(mem::align_up(v_offset + part_bytes(c.v_head_dim), 64));
  return shape;
}

void place_weights(const MemoryRequest& request, std::uint64_t largest, ModelMemory& memory) {
  std::uint32_t n_regions = 0;
  std::optional<RegionBuilder> region;
  for (const Tensor* tensor : request.tensors.all) {
    const std::uint64_t bytes = tensor->computed_bytes();
    if (!region || region->bytes() + bytes + kAlign > largest)
      region.emplace(memory.plan, fmt::format("weights.{}", n_regions++), Heap::kDeviceLocal, "tensors");
    memory.weights[tensor] = region->add(bytes);
  }
}

void place_activations(const MemoryRequest& request, ModelMemory& memory) {
  const ModelConfig& c = request.config;
  const std::uint64_t n = request.sizes.max_tokens;
  std::uint64_t kv_heads = 0, ffn = 0;
  for (const LayerShape& layer : request.shape.layers) {
    kv_heads = std::max<std::uint64_t>(kv_heads, layer.n_kv_heads);
    ffn = std::max<std::uint64_t>(ffn, layer.ffn_dim);
  }
  const std::uint64_t attn = std::uint64_t{c.n_heads} * c.v_head_dim;
  const std::uint64_t widest = std::max({std::uint64_t{c.model_dim}, attn, ffn});
  RegionBuilder region(memory.plan, "activations", Heap::kDeviceLocal, fmt::format("for {} query tokens", n));
  const auto floats = [&](std::uint64_t width) { return region.add(n * width * sizeof(float)); };
  ActivationPlaces& a = memory.activations;
  a.hidden = floats(c.model_dim);
  a.x = floats(c.model_dim);
  a.y = floats(c.model_dim);
  a.q = floats(std::uint64_t{c.n_heads} * c.head_dim);
  a.k = floats(kv_heads * c.head_dim);
  a.v = floats(kv_heads * c.v_head_dim);
  a.attn = floats(attn);
  a.gate = floats(ffn);
  a.up = floats(ffn);
  for (std::size_t i = 0; i < kQuantizedForms.size(); ++i) {
    const DType form = kQuantizedForms[i];
    a.quantized[i] = region.add(n * row_bytes(form, mem::align_up(widest, traits(form).block_elems)));
  }
}

void place_step(const MemoryRequest& request, ModelMemory& memory) {
  const Sizes& s = request.sizes;
  RegionBuilder region(memory.plan, "step_descriptor", Heap::kHostVisible, "what changes from step to step");
  const auto words = [&](std::uint64_t n) { return region.add(n * sizeof(std::uint32_t)); };
  StepPlaces& step = memory.step;
  step.counts = words(3 * kMaxCounts);
  step.n_tokens = words(1);
  step.token_ids = words(s.max_tokens);
  step.positions = words(s.max_tokens);
  step.slots = words(s.max_tokens);
  step.rope_positions = words(s.max_tokens);
  step.output_rows = words(s.max_outputs);
  step.pages = words(std::uint64_t{s.max_slots} * s.max_context / mem::kPageTokens);
}

// How many pages fit beside everything else; an eighth of the device is left to others.
Result<std::uint32_t> choose_pages(const Device& device, const MemoryRequest& request, const ModelMemory& memory) {
  const std::uint64_t one_context = request.sizes.max_context / mem::kPageTokens;
  const std::uint64_t device_bytes = device.info().memory_bytes, rest = memory.plan.allocated_bytes(),
                      room = device_bytes / 8 * 7 > rest ? device_bytes / 8 * 7 - rest : 0,
                      fit = std::min(room / memory.page_bytes,
                                     device.info().max_allocation_bytes /
                                         std::ranges::max(memory.cache_shapes, {}, &CacheShape::page_bytes).page_bytes);
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

}  // namespace

Result<ModelMemory> allocate_model(Device& device, const MemoryRequest& request) {
  ModelMemory memory;
  const std::uint64_t largest = std::min(device.info().max_allocation_bytes, kLargestRegion);
  place_weights(request, largest, memory);
  RegionBuilder tables(memory.plan, "constants", Heap::kDeviceLocal, "RoPE tables");
  for (const auto& variants : request.shape.rope_tables)
    memory.rope_tables.push_back(
        tables.add(variants.size() * request.sizes.max_context * request.config.rope_dim * sizeof(float)));
  place_activations(request, memory);
  memory.logits = RegionBuilder(memory.plan, "logits", Heap::kHostVisible,
                                fmt::format("{} output rows, which the host reads", request.sizes.max_outputs))
                      .add(std::uint64_t{request.sizes.max_outputs} * request.config.vocab_size * sizeof(float));
  place_step(request, memory);
  if (device.needs_staging())
    RegionBuilder(memory.plan, "staging", Heap::kHostVisible, "between the host and the device").add(kStagingBytes);
  for (const LayerShape& layer : request.shape.layers) {
    ZRT_TRY(const auto shape, cache_shape(request.config, layer, request.kv_dtype));
    memory.cache_shapes.push_back(shape);
    memory.page_bytes += shape.page_bytes;
  }
  ZRT_TRY(memory.n_pages, choose_pages(device, request, memory));
  for (std::size_t i = 0; i < memory.cache_shapes.size(); ++i)
    memory.caches.push_back(RegionBuilder(memory.plan, fmt::format("kv_pages.{}", i), Heap::kDeviceLocal,
                                          fmt::format("{} pages of {} bytes, {} tokens each", memory.n_pages,
                                                      memory.cache_shapes[i].page_bytes, mem::kPageTokens))
                                .add(std::uint64_t{memory.n_pages} * memory.cache_shapes[i].page_bytes));
  for (const MemoryRegion& region : memory.plan.regions) {
    ZRT_TRY(const Buffer buffer, device.allocate(region.bytes, region.heap));
    memory.buffers.push_back(buffer);
    if (region.name == "staging") device.use_staging(buffer);
  }
  return memory;
}

namespace {

// The rows of a tensor that have another form in the file, converted a few at a time.
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
  const auto write = [&](Place place, std::span<const std::byte> bytes) {
    return device.write(memory.buffers[place.region], place.offset, bytes);
  };
  for (std::size_t i = 0; i < memory.rope_tables.size(); ++i) {
    const auto rows = rope_rows(request.shape.rope_tables[i], request.sizes.max_context);
    ZRT_CHECK_OK(write(memory.rope_tables[i], std::as_bytes(std::span(rows))));
  }
  std::uint64_t done = 0, total = 0;
  for (const Tensor* tensor : request.tensors.all) total += tensor->data.size();
  for (const Tensor* tensor : request.tensors.all) {
    const Place place = memory.weights.at(tensor);
    if (tensor->dtype == tensor->stored)
      ZRT_CHECK_OK(write(place, tensor->data));
    else
      ZRT_CHECK_OK(write_converted(device, *tensor, weights, memory.buffers[place.region], place.offset));
    weights.release(*tensor);
    done += tensor->data.size();
    if (on_progress) on_progress(done, total);
  }
  return {};
}

}  // namespace zinc_rt::vulkan
