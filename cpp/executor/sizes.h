// Computes the sizes of steps and caches of an open model from the options. Uses integers only.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "executor/executor.h"

namespace zinc_rt {

// A step computes at most this many query tokens if neither the options nor the tier set a number. Longer steps gain
// nothing on T-CPU and make every request wait longer. With this number the activations of 8B models take tens of MB.
inline constexpr std::uint32_t kDefaultChunk = 256;

struct Sizes {
  std::uint32_t max_slots = 0;
  std::uint32_t state_entries = 0;  // entries of recurrent state: one per slot, then the checkpoints
  std::uint32_t max_context = 0;    // tokens that a slot can hold; a multiple of the page size
  // Query tokens of a step. At least max_slots, so that all slots can decode in one step. At least max_context if texts
  // are computed whole.
  std::uint32_t max_tokens = 0;
  std::uint32_t max_outputs = 0;  // output rows that run together as a group; a step with more rows runs several groups
  std::uint32_t history_tokens = 0;  // tokens of all histories in one group
  std::uint32_t bias_entries = 0;    // biased and banned tokens in one group
  std::uint32_t mask_words = 0;      // words of the masks in one group if each row has a mask
  std::uint32_t kv_part = 4;         // default_pages() takes at most 1 / kv_part of memory
};

// Computes the sizes from the options and the model's config. Errors: kInvalidArgument, with the value and the limit,
// if an option is outside its limits.
Result<Sizes> choose_sizes(const ExecutorOptions& options, const ModelConfig& config);

// Chooses the type of the KV cache if the options set none. Returns f32 if nothing else in the model is rounded below
// f32, else `wanted`. If `wanted` is empty, returns i16, which is as large as f16 and closer to f32. If i16 has no
// cells for the model's heads, returns f16.
KvType choose_kv_type(const ExecutorOptions& options, const Weights& weights, const ModelConfig& config,
                      std::string_view wanted = {});
// Returns the pooling that the options set, or else the pooling in the model file. Errors: kUnavailable if a causal
// model has pooling_type 4 (rank).
Result<Pooling> choose_pooling(const ExecutorOptions& options, const ModelConfig& config);
// Returns the width of the output rows of a model with this pooling; 0 if the model generates tokens.
std::uint32_t embedding_dim(Pooling pooling, const ModelConfig& config);
// Fails if is_there(type of the key cells) is false, and names the types that exist. Errors: kInvalidArgument.
Status check_kv_type(const KvType& kv, std::string_view tier, const std::function<bool(DType)>& is_there);

// Returns the number of KV pages if the options set none: enough for max_slots full contexts, but at most 1 / kv_part of
// `memory` (bytes) and at least one context. `page_bytes`: K and V of all layers for the tokens of a page.
std::uint32_t default_pages(const Sizes& sizes, std::uint64_t page_bytes, std::uint64_t memory);

}  // namespace zinc_rt
