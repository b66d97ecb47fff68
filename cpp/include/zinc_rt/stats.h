// EngineStats says what an engine has done so far, and what it holds now. Counters never fall while the engine is open.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zinc_rt {

struct ModelStats {
  std::string name;
  std::string tier;                          // for example "t_cpu"
  std::uint64_t steps = 0, step_tokens = 0;  // step_tokens is decode_tokens + prefill_tokens
  std::uint64_t decode_tokens = 0, prefill_tokens = 0;
  std::uint64_t generated_tokens = 0;  // includes the first token of each request, which a prefill step picks
  // The following counters are about guesses (Request::speculate). `drafts` counts how often a step had guesses for a
  // request, draft_tokens the guessed tokens, and accepted_draft_tokens the guessed tokens that were picked.
  std::uint64_t drafts = 0, draft_tokens = 0, accepted_draft_tokens = 0;
  // Steps of the draft model, and those that failed. After a failed step the draft model guesses no more on its device.
  std::uint64_t draft_model_steps = 0, failed_draft_model_steps = 0;
  std::uint64_t steps_ahead = 0;           // steps that began before the step before them had been committed
  std::uint64_t running = 0, waiting = 0;  // requests with a slot, and requests without a slot
  std::uint64_t backlog_tokens = 0;        // tokens of running and waiting requests that are not computed yet
  std::uint64_t slots = 0, slots_free = 0;
  std::uint64_t pages = 0, pages_free = 0;  // KV pages; pages_free includes pages that only the prefix cache holds
  std::uint64_t pages_cached = 0;
  std::uint64_t page_evictions = 0;  // number of cached pages that were dropped to make room
  std::uint64_t admissions = 0, preemptions = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;
  std::uint64_t internal_errors = 0;               // caused by bugs of ZINC_RT; should be 0
  std::uint64_t failed_steps = 0, bad_logits = 0;  // bad_logits counts requests that ended as bad_logits
  // Steps that failed since the last successful step; sum over all devices.
  std::uint64_t failed_steps_in_a_row = 0;
  std::uint64_t allocated_bytes = 0;  // sum of the memory plans, in bytes
  // `devices` has an element for each device that holds a replica of the model. The members above are sums over these
  // elements.
  struct Device;
  std::vector<Device> devices;
};

struct ModelStats::Device {
  std::uint32_t index = 0;  // number of the device in its tier
  ModelStats stats;         // the device's own numbers; its member `devices` is empty
};

struct EngineStats {
  ModelStats total;                      // sums over the models; `name` is empty, `tier` is the first model's
  double prefix_hit_rate = 0;            // cached tokens divided by prompt tokens
  float largest_prefill_difference = 0;  // found by ZINC_RT_BATCHED_PREFILL=validate
  // Tells how long the longest step that runs now on any device has been running. It is not in the JSON.
  double step_ms = 0;
  std::vector<ModelStats> models;  // the loaded models; empty once the engine is closed
};

// Returns one JSON object with the members of EngineStats except step_ms. The counters of `total` are members of the
// object itself, and are left out if the engine has no models. `models` is an array with an object per model.
std::string to_json(const EngineStats& stats);

}  // namespace zinc_rt
