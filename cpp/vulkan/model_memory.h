// The device memory of an open model: its regions, planned before anything is allocated, and where each item is in
// them.
// Thread rule: as Device.
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

// A part of a region.
struct Location {
  std::size_t region = 0;  // index in MemoryPlan::regions
  std::uint64_t offset = 0;
};

// The layout of a layer's K and V in a page of its cache: 16 cells of K, then 16 of V.
struct CacheShape {
  std::uint32_t k_dim = 0, v_dim = 0;
  std::uint32_t v_offset = 0, page_bytes = 0;
};
struct Cache {
  CacheShape shape;
  Location location;
};

// The recurrent state of a layer: one entry per slot, then one per checkpoint, all of the same size.
struct StatePart {
  Location location;
  std::uint64_t entry_bytes = 0;
};
struct DeltaState {
  StatePart conv, delta;
};

// The types of quantized activations (kernels/common/act_q8.h), that is, act_dtype() of weights that are not floats.
inline constexpr std::array kQuantizedForms{DType::kQ8A32, DType::kQ8A256, DType::kQ16A256};

// The bytes of a row of floats or quantized activations. Quantized rows are stored in planes
// (kernels/vulkan/types.glsl).
std::uint64_t activation_row_bytes(DType form, std::uint64_t width);

// Where activations are: rows of floats and of each type in kQuantizedForms. Parts that the model does not need take no
// memory.
struct ActivationPlaces {
  Location hidden, x, y;
  Location q, k, v, attn, attn_parts, query_gate, attn_gate;
  Location gate, up;
  Location channels, conv, z, beta_alpha, beta, alpha;  // for recurrent layers
  // For experts: the ids and weights of each token's choices, and their results, one row per choice.
  Location router, expert_ids, expert_weights, expert_gate, expert_up, expert_y, expert_sum, shared_router;
  Location layer_embeddings, layer_rows;
  std::array<Location, kQuantizedForms.size()> quantized;
};
// The data that the host writes for each step.
struct StepLocations {
  Location counts, n_tokens, n_outputs, token_ids, positions, slots, rope_positions, output_rows, pages;
  Location runs;  // runs of neighbouring tokens of one slot: the first token, and how many
};
// The most different numbers of workgroups in a model's commands.
inline constexpr std::uint32_t kMaxCounts = 256;

// From this many rows on, a product uses tiles of rows and attention has no parts.
inline constexpr std::uint32_t kManyTokens = 32;

struct ModelMemory {
  MemoryPlan plan;
  std::vector<Buffer> buffers;   // one per region
  std::uint64_t page_bytes = 0;  // bytes of a page, in all layers
  std::uint32_t n_pages = 0;
  std::vector<std::optional<Cache>> caches;       // by layer; nullopt if the layer has no cache of its own
  std::vector<std::optional<DeltaState>> states;  // by layer; nullopt if the layer is not recurrent

  std::unordered_map<const Tensor*, Location> weights;
  std::vector<Location> rope_tables;
  ActivationPlaces activations;
  // Up to this many tokens, attention has memory for parts, one per chunk of a full context.
  std::uint32_t n_split_tokens = 0;
  StepLocations step;
  Location logits;  // logits of the output rows, on the device
  // In host memory: a copy of the logits, and the largest logit's token of each row.
  Location host_logits, best_tokens;

  std::uint64_t state_bytes() const;  // bytes of one entry, in all layers
  Address address(Location location) const { return buffers[location.region].address + location.offset; }
  // REQUIRES: the host can access the region.
  template <class T>
  T* host(Location location) const {
    return reinterpret_cast<T*>(buffers[location.region].host + location.offset);
  }
};

struct MemoryRequest {
  const ModelConfig& config;
  const ModelShape& shape;
  const ModelTensors& tensors;
  Sizes sizes;
  DType kv_dtype = DType::kF16;
  std::uint32_t kv_pages = 0;  // 0: as many as default_pages and the device allow
};

// Plans and allocates. Errors: kExhausted with the requested and the available bytes; kUnavailable for a tensor larger
// than the device allocates at once, and for heads that are not whole blocks of kv_dtype.
Result<ModelMemory> allocate_model(Device& device, const MemoryRequest& request);

// Copies weights and RoPE tables to the device. `on_progress` may be empty.
Status load_model(Device& device, const MemoryRequest& request, const Weights& weights, const ModelMemory& memory,
                  const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress);

}  // namespace zinc_rt::vulkan
