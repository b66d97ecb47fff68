// How large the steps and the caches of an open model are, as options ask for them. Integers only.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "executor/executor.h"

namespace zinc_rt {

// The most query tokens of a step where neither the options nor the tier name a number. Longer steps gain nothing on
// T-CPU and make everybody wait longer; with this number the activations of 8B models take tens of MB.
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

// The type of the KV cache. Where nobody names one: f32 where nothing else is rounded below f32; else `wanted`, or where
// that is empty i16, which is as large as f16 and nearer to f32; f16 where that has no cells for the model's heads.
KvType choose_kv_type(const ExecutorOptions& options, const Weights& weights, const ModelConfig& config,
                      std::string_view wanted = {});
// What options ask for, else what the file says. Errors: kUnavailable for pooling_type 4 (rank) of a causal model.
Result<Pooling> choose_pooling(const ExecutorOptions& options, const ModelConfig& config);
// How wide the rows are that such a model gives; 0: it generates.
std::uint32_t embedding_dim(Pooling pooling, const ModelConfig& config);
// Refuses a type for whose cells of keys is_there says no, and names those that are there. Errors: kInvalidArgument.
Status check_kv_type(const KvType& kv, std::string_view tier, const std::function<bool(DType)>& is_there);

// Pages of a cache whose size nobody gave: max_slots full contexts, at most a quarter of `memory` bytes, at least one
// context. `page_bytes`: K and V of all layers for the tokens of a page.
std::uint32_t default_pages(const Sizes& sizes, std::uint64_t page_bytes, std::uint64_t memory);

}  // namespace zinc_rt
