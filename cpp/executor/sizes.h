// Chooses the sizes of steps and caches of an open model from the options. Integers only.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "executor/executor.h"

namespace zinc_rt {

// The most query tokens per step if neither the options nor the tier give a number. Longer steps gain nothing on T-CPU
// and make every request wait longer. With this number the activations of 8B models take tens of MB.
inline constexpr std::uint32_t kDefaultChunk = 256;

struct Sizes {
  std::uint32_t max_slots = 0;
  std::uint32_t state_entries = 0;   // of recurrent state: max_slots, then checkpoints
  std::uint32_t max_context = 0;     // tokens that a slot can hold, whole pages
  std::uint32_t max_tokens = 0;      // query tokens of a step; at least max_slots, so that all slots decode in one,
                                     // and at least max_context where a text is computed whole
  std::uint32_t max_outputs = 0;     // output rows that run together; a step with more runs them in groups
  std::uint32_t history_tokens = 0;  // of all histories in one such group
  std::uint32_t bias_entries = 0;    // biased and banned tokens of one such group
  std::uint32_t mask_words = 0;      // of the masks of one such group, all of its rows having one
};

// Errors: kInvalidArgument for an option outside its limits, with both numbers.
Result<Sizes> choose_sizes(const ExecutorOptions& options, const ModelConfig& config);

// Chooses the type of the KV cache if the options name none. It is f32 if nothing else is rounded below f32, else
// `wanted`. If `wanted` is empty it is i16, which is as large as f16 and closer to f32, or f16 if i16 has no cells for
// the model's heads.
KvType choose_kv_type(const ExecutorOptions& options, const Weights& weights, const ModelConfig& config,
                      std::string_view wanted = {});
// The pooling that the options ask for, else the file's. Errors: kUnavailable for pooling_type 4 (rank) of a causal
// model.
Result<Pooling> choose_pooling(const ExecutorOptions& options, const ModelConfig& config);
// The width of the rows that a model with this pooling gives; 0 if it generates.
std::uint32_t embedding_dim(Pooling pooling, const ModelConfig& config);
// Refuses a type if is_there is false for its key cells, and names the types that exist. Errors: kInvalidArgument.
Status check_kv_type(const KvType& kv, std::string_view tier, const std::function<bool(DType)>& is_there);

// The number of KV pages if the options give none: max_slots full contexts, but at most a quarter of `memory` bytes and
// at least one context. `page_bytes`: K and V of all layers for the tokens of a page.
std::uint32_t default_pages(const Sizes& sizes, std::uint64_t page_bytes, std::uint64_t memory);

}  // namespace zinc_rt
