// ModelMemory is the device memory of an opened model: its regions, which are planned before anything is allocated, and
// the place of each item in them.
// Thread rule: one thread at a time, as for Device.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "executor/executor.h"
#include "executor/sizes.h"
#include "vulkan/device/device.h"
#include "vulkan/model_tensors.h"

namespace zinc_rt::vulkan {

using Address = std::uint64_t;

// Location is a place in a region of the memory plan.
struct Location {
  std::size_t region = 0;  // index in MemoryPlan::regions
  std::uint64_t offset = 0;
};

// CacheShape tells how a layer's K and V are arranged in a page of its cache: 16 cells of K, then 16 cells of V.
struct CacheShape {
  std::uint32_t k_dim = 0, v_dim = 0;
  std::uint32_t v_offset = 0, page_bytes = 0;
};
struct Cache {
  CacheShape shape;
  Location location;
};

// StatePart is a part of a layer's recurrent state. It has one entry per slot, then one per checkpoint, all of the same
// size.
struct StatePart {
  Location location;
  std::uint64_t entry_bytes = 0;
};
struct DeltaState {
  StatePart conv, delta;
};

// The types of quantized activations (kernels/common/act_q8.h). act_dtype() returns one of them for each type of
// quantized weights.
inline constexpr std::array kQuantizedForms{DType::kQ8A32, DType::kQ8A256, DType::kQ16A256};

// Returns the bytes of a row of floats or of quantized activations. Quantized rows are stored in planes
// (kernels/vulkan/types.glsl).
std::uint64_t activation_row_bytes(DType form, std::uint64_t width);

// ActivationPlaces tells where each activation of a step is: rows of floats, and rows of each type in kQuantizedForms.
// Activations that the model does not need take no memory.
struct ActivationPlaces {
  Location hidden, x, y;
  Location q, k, v, attn, attn_parts, query_gate, attn_gate;
  Location gate, up;
  Location channels, conv, z, beta_alpha, beta, alpha;  // only for recurrent layers
  // Only for experts: the ids and weights of each token's choices, and their results, one row per choice.
  Location router, expert_ids, expert_weights, expert_gate, expert_up, expert_y, expert_sum, shared_router;
  Location layer_embeddings, layer_rows;
  std::array<Location, kQuantizedForms.size()> quantized;
};
// StepLocations tells where the data is that the host writes for each step (the step descriptor).
struct StepLocations {
  Location counts, n_tokens, n_outputs, token_ids, positions, slots, rope_positions, output_rows, pages;
  Location runs;  // per run of neighbouring tokens of one slot: its first token and their number
};
// A model's commands may have at most this many different numbers of workgroups.
inline constexpr std::uint32_t kMaxCounts = 256;

// From this many rows on, products use tiles of rows, and attention does not split histories into parts.
inline constexpr std::uint32_t kManyTokens = 32;

struct ModelMemory {
  MemoryPlan plan;
  std::vector<Buffer> buffers;   // one per region
  std::uint64_t page_bytes = 0;  // bytes of a page in all layers together
  std::uint32_t n_pages = 0;
  std::vector<std::optional<Cache>> caches;       // index: layer; nullopt if the layer has no cache of its own
  std::vector<std::optional<DeltaState>> states;  // index: layer; nullopt if the layer is not recurrent

  std::unordered_map<const Tensor*, Location> weights;
  std::vector<Location> rope_tables;
  ActivationPlaces activations;
  // For steps of up to this many tokens, attention has memory for parts, one part per chunk of a full context.
  std::uint32_t n_split_tokens = 0;
  StepLocations step;
  Location logits;  // the logits of the output rows, in device memory
  // In host memory: a copy of the logits, and the token with the largest logit of each row.
  Location host_logits, best_tokens;

  std::uint64_t state_bytes() const;  // bytes of one slot's entries in all layers
  Address address(Location location) const { return buffers[location.region].address + location.offset; }
  // REQUIRES: the host can access the region.
  template <class T>
  T* host(Location location) const {
    return reinterpret_cast<T*>(buffers[location.region].host + location.offset);
  }
};

// MemoryRequest tells what a model needs memory for.
struct MemoryRequest {
  const ModelConfig& config;
  const ModelShape& shape;
  const ModelTensors& tensors;
  Sizes sizes;
  DType kv_dtype = DType::kF16;
  std::uint32_t kv_pages = 0;  // 0: as many as default_pages() and the device allow
};

// Plans the model's memory and allocates it. Errors: kExhausted with the requested and the available bytes;
// kUnavailable for a tensor larger than the device allocates at once, and for heads that are not whole blocks of
// kv_dtype.
Result<ModelMemory> allocate_model(Device& device, const MemoryRequest& request);

// Copies weights and RoPE tables to the device. `on_progress` reports bytes and may be empty.
Status load_model(Device& device, const MemoryRequest& request, const Weights& weights, const ModelMemory& memory,
                  const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress);

}  // namespace zinc_rt::vulkan
