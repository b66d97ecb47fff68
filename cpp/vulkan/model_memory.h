// The device memory of an open model: its regions, planned before anything is allocated, and where things lie in them.
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
struct Place {
  std::size_t region = 0;  // in MemoryPlan::regions
  std::uint64_t offset = 0;
};

// How K and V of a layer lie in a page of its cache: 16 cells of K, then 16 of V.
struct CacheShape {
  std::uint32_t k_dim = 0, v_dim = 0;
  std::uint32_t v_offset = 0, page_bytes = 0;
};
struct Cache {
  CacheShape shape;
  Place place;
};

// The recurrent state of a layer: entries of slots, then of checkpoints, all of one size.
struct StatePart {
  Place place;
  std::uint64_t entry_bytes = 0;
};
struct DeltaState {
  StatePart conv, delta;
};

// The types of quantized activations (kernels/common/act_q8.h): what act_dtype() gives for weights that are not floats.
inline constexpr std::array kQuantizedForms{DType::kQ8A32, DType::kQ8A256, DType::kQ16A256};

// Bytes of a row of quantized activations, which lies in planes (kernels/vulkan/types.glsl); of floats too.
std::uint64_t activation_row_bytes(DType form, std::uint64_t width);

// Activations: rows of floats, and of each of kQuantizedForms. Parts that a model does not have take no memory.
struct ActivationPlaces {
  Place hidden, x, y;
  Place q, k, v, attn, attn_parts, query_gate, attn_gate;
  Place gate, up;
  Place channels, conv, z, beta_alpha, beta, alpha;  // of recurrent layers
  // Of experts: ids and weights of a token's choices, and what they make, a row a choice.
  Place router, expert_ids, expert_weights, expert_gate, expert_up, expert_y, expert_sum, shared_router;
  Place layer_embeddings, layer_rows;
  std::array<Place, kQuantizedForms.size()> quantized;
};
// What the host writes for each step.
struct StepPlaces {
  Place counts, n_tokens, n_outputs, token_ids, positions, slots, rope_positions, output_rows, pages;
  Place runs;  // of tokens of one slot: the first one, and how many
};
inline constexpr std::uint32_t kMaxCounts = 256;  // different numbers of workgroups in a model's commands

// From so many rows on a product takes tiles of them, and attention has no parts.
inline constexpr std::uint32_t kManyTokens = 32;

struct ModelMemory {
  MemoryPlan plan;
  std::vector<Buffer> buffers;   // one a region
  std::uint64_t page_bytes = 0;  // of all layers
  std::uint32_t n_pages = 0;
  std::vector<std::optional<Cache>> caches;       // by layer; those that have one of their own
  std::vector<std::optional<DeltaState>> states;  // by layer; those that are recurrent

  std::unordered_map<const Tensor*, Place> weights;
  std::vector<Place> rope_tables;
  ActivationPlaces activations;
  std::uint32_t n_split_tokens = 0;  // whose attention has room for parts, one a chunk of a full context
  StepPlaces step;
  Place logits;                    // of the output rows, on the device
  Place host_logits, best_tokens;  // which the host reads: a copy of them, and the largest one of each row

  std::uint64_t state_bytes() const;  // of one entry of all layers
  Address address(Place place) const { return buffers[place.region].address + place.offset; }
  // REQUIRES: the region is one that the host can access.
  template <class T>
  T* host(Place place) const {
    return reinterpret_cast<T*>(buffers[place.region].host + place.offset);
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

// Plans and allocates. Errors: kExhausted with what is wanted and what is there; kUnavailable for a tensor larger than
// the device gives at once, and for heads that are no whole blocks of kv_dtype.
Result<ModelMemory> allocate_model(Device& device, const MemoryRequest& request);

// Copies weights and RoPE tables to the device. `on_progress` may be empty.
Status load_model(Device& device, const MemoryRequest& request, const Weights& weights, const ModelMemory& memory,
                  const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress);

}  // namespace zinc_rt::vulkan
